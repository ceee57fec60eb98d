// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "nic/queue_reader.hpp"

namespace ferry::test {
namespace {

class mlx5_reader final : public queue_reader {
 public:
  using queue_reader::queue_reader;

  refusal announced(std::uint64_t value, std::uint32_t fetched, std::uint32_t& end) override {
    std::byte copy[8];
    std::memcpy(copy, &value, 8);
    raw_bytes const b(copy);
    if (b.big(4, 3) != queue_.number) return refusal::doorbell_of_another_queue;
    auto const last = static_cast<std::uint32_t>(b.big(1, 2));
    auto const count = (last + 1 - fetched) & 0xffff;
    if (count > queue_.num_entries) return refusal::queue_overrun;
    std::uint32_t record = load(queue_.doorbell_record + 1);
    std::byte bytes[4];
    std::memcpy(bytes, &record, 4);
    record = static_cast<std::uint32_t>(raw_bytes(bytes).big(0, 4));
    if (record > 0xffff) return refusal::doorbell_malformed;
    if (((record - (last + 1)) & 0xffff) > 0x7fff) return refusal::doorbell_before_record;
    end = fetched + count;
    if (count != 0 && std::memcmp(entry(end - 1).data(), copy, 8) != 0)
      return refusal::doorbell_without_entry;
    return refusal::none;
  }

  refusal decode(std::uint32_t index, work& w, std::uint32_t& opcode) override {
    raw_bytes const e = entry(index);
    opcode = e.byte(3);
    if (opcode != 0x08 && opcode != 0x09 && opcode != 0x12) return refusal::wrong_opcode;
    if (e.byte(0) != 0) return refusal::wrong_opcode;
    if (e.big(1, 2) != (index & 0xffff)) return refusal::wrong_index;
    if (e.big(4, 3) != queue_.number) return refusal::wrong_queue;
    std::uint32_t const units = e.byte(7), mode = e.byte(11);
    if ((mode & ~0x88u) != 0) return refusal::wrong_flags;
    if (!e.zero(8, 3) || !e.zero(28, 4)) return refusal::reserved_not_zero;
    if (opcode != 0x09 && !e.zero(12, 4)) return refusal::reserved_not_zero;
    w = {};
    w.signalled = mode & 0x08;
    w.fenced = mode & 0x80;
    w.immediate = static_cast<std::uint32_t>(e.big(12, 4));
    w.remote = e.big(16, 8);
    w.remote_key = static_cast<std::uint32_t>(e.big(24, 4));
    if (opcode == 0x12) return decode_atomic(e, units, w);
    w.what = opcode == 0x09 ? verb::write_with_immediate : verb::write;
    if (units == 2) return refusal::none;
    if (units != 3) return refusal::wrong_size;
    if (e.byte(32) & 0x80) {
      if (e.big(32, 4) != 0x80000008u || opcode != 0x08) return refusal::wrong_size;
      w.what = verb::inline_word;
      w.word = e.little(36, 8);
      return refusal::none;
    }
    return decode_data(e, 32, w);
  }

  void complete(std::uint32_t position, ending const& end) override {
    raw_bytes c(queue_.completions + std::size_t{position & (queue_.num_completions - 1)} * 64);
    // The last word stays another round's until everything else is there.
    std::memset(c.data(), 0, 60);
    std::uint32_t const kind = end.status == nic_status::ok ? 0 : 13;
    c.put_big(55, syndrome(end.status), 1);
    c.put_big(54, kind ? 0x88 : 0, 1);
    c.put_big(56, end.opcode << 24 | queue_.number, 4);
    std::byte last[4];
    raw_bytes tail(last);
    tail.put_big(0, end.index & 0xffff, 2);
    tail.put_big(2, 0, 1);
    tail.put_big(3, kind << 4 | (position & queue_.num_completions ? 1u : 0u), 1);
    std::uint32_t word;
    std::memcpy(&word, last, 4);
    store_last_word(c.data() + 60, word);
  }

  refusal consumed(std::uint32_t before, std::uint32_t& now) override {
    std::uint32_t word = load(queue_.completion_record);
    std::byte bytes[4];
    std::memcpy(bytes, &word, 4);
    word = static_cast<std::uint32_t>(raw_bytes(bytes).big(0, 4));
    if (word > 0xffffff) return refusal::consumer_malformed;
    now = before + ((word - before) & 0xffffff);
    return refusal::none;
  }
  bool flushes_each() const override { return true; }

 private:
  raw_bytes entry(std::uint32_t index) const {
    return raw_bytes(queue_.entries + std::size_t{index & (queue_.num_entries - 1)} * 64);
  }
  static refusal decode_data(raw_bytes const& e, std::size_t at, work& w) {
    w.bytes = static_cast<std::uint32_t>(e.big(at, 4));
    // 0 would be 2^31 bytes.
    if (w.bytes == 0 || w.bytes > 0x7fffffff) return refusal::wrong_size;
    w.local_key = static_cast<std::uint32_t>(e.big(at + 4, 4));
    w.local = e.big(at + 8, 8);
    return refusal::none;
  }
  static refusal decode_atomic(raw_bytes const& e, std::uint32_t units, work& w) {
    if (units != 4) return refusal::wrong_size;
    w.what = verb::fetch_add;
    w.word = e.big(32, 8);
    if (!e.zero(40, 8)) return refusal::reserved_not_zero;
    if (refusal const r = decode_data(e, 48, w); r != refusal::none) return r;
    return w.bytes == 8 ? refusal::none : refusal::wrong_size;
  }
  static std::uint32_t syndrome(nic_status s) {
    switch (s) {
      case nic_status::ok: return 0;
      case nic_status::local_length: return 0x01;
      case nic_status::local_operation: return 0x02;
      case nic_status::local_protection: return 0x04;
      case nic_status::flushed: return 0x05;
      case nic_status::bad_response: return 0x10;
      case nic_status::remote_invalid: return 0x12;
      case nic_status::remote_access: return 0x13;
      case nic_status::remote_operation: return 0x14;
      case nic_status::retry_exceeded: return 0x15;
      case nic_status::receiver_not_ready: return 0x16;
      default: return 0x22;
    }
  }
};

}  // namespace

std::unique_ptr<queue_reader> make_mlx5_reader(queue_pair const& q) {
  return std::make_unique<mlx5_reader>(q);
}

}  // namespace ferry::test
