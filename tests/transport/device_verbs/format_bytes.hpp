// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Queue memory for tests of one format, and its bytes as text.
#pragma once

#include <ferry/transport/device_verbs/nic_access.hpp>
#include <ferry/transport/device_verbs/queue_pair.hpp>
#include <ferry/transport/device_verbs/send_queue.hpp>

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace ferry::device_verbs::test {

/// Bytes as "00 0a ff", sixteen a line.
inline std::string hex(std::byte const* from, std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i) {
    char two[4];
    std::snprintf(two, sizeof two, "%02x", std::to_integer<unsigned>(from[i]));
    text += two;
    text += i % 16 == 15 || i + 1 == bytes ? "\n" : " ";
  }
  return text;
}

/// A queue of 8 entries in memory that nobody else reads. 0x00abcd is its number.
template <class Format>
struct lone_queue {
  static constexpr std::uint32_t entries = 8;
  alignas(64) std::array<std::byte, entries * 64> entry_bytes{};
  alignas(64) std::array<std::byte, entries * 64> completion_bytes{};
  std::array<std::uint64_t, entries> search{};
  std::uint64_t doorbell = 0, completion_doorbell = 0;
  std::array<std::uint32_t, 2> doorbell_record{}, completion_record{};
  queue_pair pair;
  queue_counters counters;
  cpu_nic_access access;

  lone_queue() {
    pair.entries = entry_bytes.data();
    pair.num_entries = entries;
    pair.number = 0x00abcd;
    pair.doorbell = &doorbell;
    pair.doorbell_record = doorbell_record.data();
    pair.search_table = search.data();
    pair.mtu = 1024;
    pair.handle = 0x1122334455667788;
    pair.completions = completion_bytes.data();
    pair.num_completions = entries;
    pair.completion_number = 0x000543;
    pair.completion_doorbell = &completion_doorbell;
    pair.completion_record = completion_record.data();
    Format::clear_completions(pair);
    counters = start_counters<Format>(pair);
  }

  /// The bytes of an entry after it was written.
  std::string written(std::uint32_t index, work const& w) {
    Format::write(access, pair, index, w);
    return hex(pair.entries + (index % entries) * Format::entry_bytes, Format::entry_bytes);
  }
  std::byte* completion_at(std::uint32_t position) {
    return pair.completions + (position % entries) * Format::completion_bytes;
  }
  /// Stores bytes in a completion, from `offset` on.
  void poke(std::uint32_t position, std::size_t offset, std::vector<int> const& bytes) {
    for (std::size_t i = 0; i < bytes.size(); ++i)
      completion_at(position)[offset + i] = static_cast<std::byte>(bytes[i]);
  }
};

/// The operations whose bytes the tests spell out.
inline work sample(verb what) {
  return {.what = what,
          .remote_key = 0xa1b2c3d4,
          .remote = 0x1011121314151618,
          .local = 0x2021222324252628,
          .local_key = 0x31323334,
          .bytes = 0x1c00,
          .word = 0x4142434445464748,
          .immediate = 0x51525354};
}

}  // namespace ferry::device_verbs::test
