// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "nic/queue_reader.hpp"

namespace ferry::test {
namespace {

class ionic_reader final : public queue_reader {
 public:
  using queue_reader::queue_reader;

  refusal announced(std::uint64_t value, std::uint32_t fetched, std::uint32_t& end) override {
    if (value >> 24 != queue_.number) return refusal::doorbell_of_another_queue;
    auto const place = static_cast<std::uint32_t>(value & 0xffffff);
    if (place >= queue_.num_entries) return refusal::doorbell_malformed;
    end = fetched + ((place - fetched) & (queue_.num_entries - 1));
    return refusal::none;
  }

  refusal decode(std::uint32_t index, work& w, std::uint32_t& opcode) override {
    std::uint32_t const place = index & (queue_.num_entries - 1);
    raw_bytes const e(queue_.entries + std::size_t{place} * 64);
    opcode = e.byte(8);
    auto const flags = static_cast<std::uint32_t>(e.big(10, 2));
    if (e.little(0, 8) != place) return refusal::wrong_index;
    if ((flags >> 4 & 1) != (index & queue_.num_entries ? 0u : 1u)) return refusal::wrong_owner;
    if (opcode != 0x21 && opcode != 0x61 && opcode != 0x05) return refusal::wrong_opcode;
    if ((flags & ~0x1du) != 0 || ((flags & 4) && opcode != 0x21)) return refusal::wrong_flags;
    if (opcode != 0x61 && !e.zero(12, 4)) return refusal::reserved_not_zero;
    w = {};
    w.fenced = flags & 1;
    w.signalled = flags & 8;
    w.immediate = static_cast<std::uint32_t>(e.big(12, 4));
    w.remote = e.big(16, 8);
    w.remote_key = static_cast<std::uint32_t>(e.big(24, 4));
    std::uint32_t const pieces = e.byte(9);
    if (opcode == 0x05) return decode_atomic(e, pieces, w);
    w.what = opcode == 0x61 ? verb::write_with_immediate : verb::write;
    w.bytes = static_cast<std::uint32_t>(e.big(28, 4));
    if (flags & 4) {
      if (pieces != 0 || w.bytes != 8) return refusal::wrong_size;
      if (!e.zero(40, 24)) return refusal::reserved_not_zero;
      w.what = verb::inline_word;
      w.bytes = 0;
      w.word = e.little(32, 8);
      return refusal::none;
    }
    if (pieces != (w.bytes != 0 ? 1u : 0u)) return refusal::wrong_size;
    if (pieces == 1 && e.big(40, 4) != w.bytes) return refusal::wrong_size;
    if (w.bytes > 0x7fffffff) return refusal::wrong_size;
    w.local = e.big(32, 8);
    w.local_key = static_cast<std::uint32_t>(e.big(44, 4));
    return e.zero(48, 16) ? refusal::none : refusal::reserved_not_zero;
  }

  void complete(std::uint32_t position, ending const& end) override {
    raw_bytes c(queue_.completions + std::size_t{position & (queue_.num_completions - 1)} * 32);
    c.clear(28);
    bool const failed = end.status != nic_status::ok, flush = end.status == nic_status::flushed;
    c.put_big(4, (end.index + 1) & 0xffffff, 4);
    c.put_little(16, end.index & (queue_.num_entries - 1), 8);
    c.put_big(24, code(end.status), 4);
    std::uint32_t const colour = position & queue_.num_completions ? 0 : 1;
    std::uint32_t const kind =
        queue_.number << 8 | (flush ? 3u : 2u) << 5 | (failed ? 2u : 0u) | colour;
    std::byte last[4];
    raw_bytes(last).put_big(0, kind, 4);
    std::uint32_t word;
    std::memcpy(&word, last, 4);
    store_last_word(c.data() + 28, word);
  }

  refusal consumed(std::uint32_t before, std::uint32_t& now) override {
    std::uint64_t const value = load(queue_.completion_doorbell);
    now = before;
    if (value == 0) return refusal::none;  // never rung
    auto const place = static_cast<std::uint32_t>(value & 0xffffff);
    if (value >> 24 != queue_.completion_number || place >= queue_.num_completions)
      return refusal::consumer_malformed;
    now = before + ((place - before) & (queue_.num_completions - 1));
    return refusal::none;
  }
  bool flushes_each() const override { return false; }

 private:
  static refusal decode_atomic(raw_bytes const& e, std::uint32_t pieces, work& w) {
    if (pieces != 1) return refusal::wrong_size;
    w.what = verb::fetch_add;
    w.bytes = 8;
    w.word = e.big(28, 8);
    w.local_key = static_cast<std::uint32_t>(e.big(44, 4));
    w.local = e.big(48, 8);
    return e.zero(36, 8) && e.zero(56, 8) ? refusal::none : refusal::reserved_not_zero;
  }
  static std::uint32_t code(nic_status s) {
    switch (s) {
      case nic_status::ok: return 0;
      case nic_status::local_length: return 1;
      case nic_status::local_operation: return 2;
      case nic_status::local_protection: return 3;
      case nic_status::flushed: return 4;
      case nic_status::bad_response: return 6;
      case nic_status::remote_invalid: return 8;
      case nic_status::remote_access: return 9;
      case nic_status::remote_operation: return 10;
      case nic_status::retry_exceeded: return 11;
      case nic_status::receiver_not_ready: return 12;
      default: return 13;
    }
  }
};

}  // namespace

std::unique_ptr<queue_reader> make_ionic_reader(queue_pair const& q) {
  return std::make_unique<ionic_reader>(q);
}

}  // namespace ferry::test
