// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Feeds an emulated NIC, and a poller, with queues whose bytes anybody may have written.
#pragma once

#include "nic/direct_queue.hpp"

#include <cstdint>
#include <cstring>
#include <span>

namespace ferry::test {

/// Takes numbers from bytes, 0 when there are none left.
class byte_source {
 public:
  explicit byte_source(std::span<std::uint8_t const> bytes) : left_(bytes) {}
  bool empty() const { return left_.empty(); }
  std::uint8_t byte() {
    if (left_.empty()) return 0;
    std::uint8_t const b = left_.front();
    left_ = left_.subspan(1);
    return b;
  }
  std::uint64_t number(int bytes) {
    std::uint64_t value = 0;
    for (int i = 0; i < bytes; ++i) value = value << 8 | byte();
    return value;
  }

 private:
  std::span<std::uint8_t const> left_;
};

/// What a run may not do: leave the memory that is registered, or not end.
struct corrupt_result {
  bool guard_intact = true;
  std::uint64_t refusals = 0;
  std::uint64_t carried_out = 0;
};

/// Posts right entries, overwrites bytes of entries, records, registers, search table and
/// completions as `bytes` say, rings, lets the NIC work and the poller read.
template <class Format>
corrupt_result run_corrupt_queue(nic_vendor vendor, std::span<std::uint8_t const> bytes) {
  direct_queue<Format> q(vendor, {}, false);
  // A word on each side of what peers may write must stay as it is.
  window const guarded = window::plain(3 * 4096).value();
  constexpr std::uint64_t guard = 0x5a5a5a5a5a5a5a5a;
  std::memset(guarded.data(), 0x5a, guarded.size());
  q.remote_key = q.memory->add({.owner = 2,
                                .address = reinterpret_cast<std::uint64_t>(guarded.data()) + 4096,
                                .bytes = 4096,
                                .mapped = guarded.data() + 4096,
                                .by_peers = true});
  std::ptrdiff_t const to_guarded = guarded.data() + 4096 - q.remote.data();
  byte_source from(bytes);
  std::uint32_t index = 0, shown = 0;
  auto const& p = q.queue.pair;
  while (!from.empty()) {
    switch (from.byte() % 8) {
      case 0:
      case 1: {  // a right entry of some kind
        work w = q.write_of(from.byte(), from.number(2) % 4096, from.byte() % 64);
        w.what = static_cast<verb>(from.byte() % 4);
        w.fenced = from.byte() & 1;
        w.remote += static_cast<std::uint64_t>(to_guarded);
        q.queue.write(index++, w);
        break;
      }
      case 2:  // some bytes of an entry
        p.entries[from.number(2) % (p.num_entries * Format::entry_bytes)] =
            static_cast<std::byte>(from.byte());
        break;
      case 3:  // a right doorbell
        if (index != shown) Format::announce(q.queue.access, p, q.counters, shown, index);
        shown = index;
        break;
      case 4:  // any doorbell
        *p.doorbell = from.number(8);
        break;
      case 5:  // records and search table
        if (p.doorbell_record) p.doorbell_record[1] = static_cast<std::uint32_t>(from.number(4));
        if (p.search_table) p.search_table[from.byte() % p.num_entries] = from.number(8);
        break;
      case 6:  // completions, and how many were read
        p.completions[from.number(2) % (p.num_completions * Format::completion_bytes)] =
            static_cast<std::byte>(from.byte());
        if (from.byte() % 8 == 0) {
          if (p.completion_record)
            p.completion_record[0] = static_cast<std::uint32_t>(from.number(4));
          if (p.completion_doorbell) *p.completion_doorbell = from.number(8);
        }
        break;
      case 7:
        for (int turns = from.byte() % 16; turns > 0; --turns) q.nic.turn();
        q.queue.poll();
        break;
    }
  }
  for (int turns = 0; turns < 500 && q.nic.turn(); ++turns) {
  }
  q.queue.poll();
  corrupt_result r;
  r.refusals = q.nic.refusals().size();
  r.carried_out = q.nic.counts().entries;
  for (std::size_t at = 0; at < guarded.size(); at += 8) {
    if (at == 4096) at = 8192;
    std::uint64_t word;
    std::memcpy(&word, guarded.data() + at, 8);
    if (word != guard) r.guard_intact = false;
  }
  return r;
}

}  // namespace ferry::test
