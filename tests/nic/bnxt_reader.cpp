// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "nic/queue_reader.hpp"

namespace ferry::test {
namespace {

constexpr std::uint32_t slots = 3;

class bnxt_reader final : public queue_reader {
 public:
  bnxt_reader(queue_pair const& q, std::uint32_t first_packet)
      : queue_reader(q), packet_(first_packet) {}

  refusal announced(std::uint64_t value, std::uint32_t fetched, std::uint32_t& end) override {
    if (refusal const r = check_head(value, 0, queue_.number); r != refusal::none) return r;
    auto const slot = static_cast<std::uint32_t>(value & 0xffffff);
    if (slot % slots != 0 || slot / slots >= queue_.num_entries) return refusal::doorbell_malformed;
    std::uint32_t const count = distance(slot / slots, value, queue_.num_entries, fetched);
    // A queue that is announced whole or more: the round is wrong.
    if (count >= queue_.num_entries) return refusal::wrong_epoch;
    end = fetched + count;
    return refusal::none;
  }

  refusal decode(std::uint32_t index, work& w, std::uint32_t& opcode) override {
    std::uint32_t const place = index & (queue_.num_entries - 1);
    raw_bytes const e(queue_.entries + std::size_t{place} * slots * 16);
    opcode = e.byte(0);
    std::uint32_t const flags = e.byte(1);
    if (opcode != 0x04 && opcode != 0x05 && opcode != 0x0b) return refusal::wrong_opcode;
    if (e.byte(2) != slots) return refusal::wrong_size;
    if (e.byte(3) != 0) return refusal::reserved_not_zero;
    if ((flags & ~0x15u) != 0 || ((flags & 0x10) && opcode != 0x04)) return refusal::wrong_flags;
    w = {};
    w.signalled = flags & 0x01;
    w.fenced = flags & 0x04;
    if (opcode == 0x0b) {
      w.what = verb::fetch_add;
      w.remote_key = static_cast<std::uint32_t>(e.little(4, 4));
      w.remote = e.little(8, 8);
      w.word = e.little(16, 8);
      if (!e.zero(24, 8)) return refusal::reserved_not_zero;
    } else {
      w.what = opcode == 0x05 ? verb::write_with_immediate : verb::write;
      w.immediate = static_cast<std::uint32_t>(e.little(4, 4));
      if (opcode == 0x04 && w.immediate != 0) return refusal::reserved_not_zero;
      w.bytes = static_cast<std::uint32_t>(e.little(8, 4));
      w.remote = e.little(16, 8);
      w.remote_key = static_cast<std::uint32_t>(e.little(24, 4));
      if (!e.zero(12, 4) || !e.zero(28, 4)) return refusal::reserved_not_zero;
    }
    if (refusal const r = decode_data(e, flags & 0x10, w); r != refusal::none) return r;
    return check_search_entry(place, w);
  }

  void complete(std::uint32_t position, ending const& end) override {
    raw_bytes c(queue_.completions + std::size_t{position & (queue_.num_completions - 1)} * 32);
    c.put_little(0, queue_.handle, 8);
    // Counts to one past the entry, within the queue.
    c.put_little(8, (end.index + 1) & (queue_.num_entries - 1), 4);
    c.put_little(12, 0, 4);
    c.put_little(16, 0, 8);
    c.put_little(28, 0, 4);
    bool const flush = end.status == nic_status::flushed;
    std::uint32_t const type = flush ? 0x0e : 0;
    std::uint32_t const phase = position & queue_.num_completions ? 0 : 1;
    store_last_word(c.data() + 24, code(end.status) << 8 | type << 1 | phase);
  }

  refusal consumed(std::uint32_t before, std::uint32_t& now) override {
    std::uint64_t const value = load(queue_.completion_doorbell);
    now = before;
    if (value == 0) return refusal::none;  // never rung
    if (check_head(value, 4, queue_.completion_number) != refusal::none)
      return refusal::consumer_malformed;
    auto const place = static_cast<std::uint32_t>(value & 0xffffff);
    if (place >= queue_.num_completions) return refusal::consumer_malformed;
    now = before + distance(place, value, queue_.num_completions, before);
    return refusal::none;
  }
  bool flushes_each() const override { return false; }

 private:
  static refusal check_head(std::uint64_t value, std::uint32_t type, std::uint32_t number) {
    auto const high = static_cast<std::uint32_t>(value >> 32);
    if ((high & 0xfffff) != number) return refusal::doorbell_of_another_queue;
    bool const right =
        high >> 28 == type && (high >> 20 & 0xff) == 0x40 && (value >> 25 & 0x7f) == 0;
    return right ? refusal::none : refusal::doorbell_malformed;
  }
  /// How far a place in the round that the epoch bit names lies ahead of a counter.
  static std::uint32_t distance(std::uint32_t place, std::uint64_t value, std::uint32_t num,
                                std::uint32_t from) {
    std::uint32_t const epoch = value >> 24 & 1;
    return (place + epoch * num - from) & (2 * num - 1);
  }
  static refusal decode_data(raw_bytes const& e, bool inlined, work& w) {
    if (inlined) {
      if (w.bytes != 8) return refusal::wrong_size;
      if (!e.zero(40, 8)) return refusal::reserved_not_zero;
      w.what = verb::inline_word;
      w.bytes = 0;
      w.word = e.little(32, 8);
      return refusal::none;
    }
    w.local = e.little(32, 8);
    w.local_key = static_cast<std::uint32_t>(e.little(40, 4));
    auto const bytes = static_cast<std::uint32_t>(e.little(44, 4));
    if (w.what == verb::fetch_add) w.bytes = 8;
    return bytes == w.bytes && bytes <= 0x7fffffff ? refusal::none : refusal::wrong_size;
  }
  refusal check_search_entry(std::uint32_t place, work const& w) {
    std::uint64_t const found = load(queue_.search_table + place);
    bool const one = w.what == verb::fetch_add || w.what == verb::inline_word || w.bytes == 0;
    std::uint32_t const packets = one ? 1 : (w.bytes - 1) / queue_.mtu + 1;
    std::uint32_t const next = (packet_ + packets) & 0xffffff;
    bool const right = (found & 0xffffff) == packet_ && (found >> 24 & 0xffffff) == next &&
                       found >> 48 == place * slots;
    packet_ = next;
    return right ? refusal::none : refusal::wrong_search_entry;
  }
  static std::uint32_t code(nic_status s) {
    switch (s) {
      case nic_status::ok: return 0x00;
      case nic_status::bad_response: return 0x01;
      case nic_status::local_length: return 0x02;
      case nic_status::local_operation: return 0x03;
      case nic_status::local_protection: return 0x04;
      case nic_status::remote_invalid: return 0x06;
      case nic_status::remote_access: return 0x07;
      case nic_status::remote_operation: return 0x08;
      case nic_status::receiver_not_ready: return 0x09;
      case nic_status::retry_exceeded: return 0x0a;
      case nic_status::flushed: return 0x0b;
      default: return 0x05;
    }
  }

  std::uint32_t packet_;
};

}  // namespace

std::unique_ptr<queue_reader> make_bnxt_reader(queue_pair const& q, std::uint32_t first_packet) {
  return std::make_unique<bnxt_reader>(q, first_packet);
}

}  // namespace ferry::test
