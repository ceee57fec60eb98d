// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The NIC's half of a vendor's formats: reads raw bytes at the offsets of docs/nic_formats.md, and
/// shares no line with the code that writes them.
#pragma once

#include <ferry/transport/device_verbs/formats.hpp>
#include <ferry/transport/device_verbs/queue_pair.hpp>
#include <ferry/transport/device_verbs/work.hpp>

#include "nic/refusal.hpp"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>

namespace ferry::test {

using device_verbs::nic_status;
using device_verbs::nic_vendor;
using device_verbs::queue_pair;
using device_verbs::verb;
using device_verbs::work;

/// Reads and writes numbers at byte offsets, whatever the alignment.
class raw_bytes {
 public:
  explicit raw_bytes(std::byte* at) : at_(at) {}
  std::uint64_t little(std::size_t offset, int bytes) const {
    std::uint64_t value = 0;
    for (int i = bytes - 1; i >= 0; --i)
      value = value << 8 | byte(offset + static_cast<std::size_t>(i));
    return value;
  }
  std::uint64_t big(std::size_t offset, int bytes) const {
    std::uint64_t value = 0;
    for (int i = 0; i < bytes; ++i) value = value << 8 | byte(offset + static_cast<std::size_t>(i));
    return value;
  }
  std::uint32_t byte(std::size_t offset) const {
    return std::to_integer<std::uint32_t>(at_[offset]);
  }
  bool zero(std::size_t offset, std::size_t bytes) const {
    for (std::size_t i = 0; i < bytes; ++i)
      if (at_[offset + i] != std::byte{0}) return false;
    return true;
  }
  void put_little(std::size_t offset, std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i)
      at_[offset + static_cast<std::size_t>(i)] = static_cast<std::byte>(value >> (8 * i));
  }
  void put_big(std::size_t offset, std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i)
      at_[offset + static_cast<std::size_t>(i)] =
          static_cast<std::byte>(value >> (8 * (bytes - 1 - i)));
  }
  void clear(std::size_t bytes) { std::memset(at_, 0, bytes); }
  std::byte* data() const { return at_; }

 private:
  std::byte* at_;
};

/// What ended, for a completion.
struct ending {
  std::uint32_t index = 0;  ///< of the entry, counted without end
  nic_status status = nic_status::ok;
  std::uint32_t opcode = 0;  ///< the entry's
};

/// One queue pair's bytes. Counters given to it run without end.
class queue_reader {
 public:
  explicit queue_reader(queue_pair const& q) : queue_(q) {}
  virtual ~queue_reader() = default;

  /// How many entries the register's value announces, when `fetched` were read before.
  virtual refusal announced(std::uint64_t value, std::uint32_t fetched, std::uint32_t& end) = 0;
  /// Reads entry `index`.
  virtual refusal decode(std::uint32_t index, work& into, std::uint32_t& opcode) = 0;
  /// Writes the completion at `position`.
  virtual void complete(std::uint32_t position, ending const& e) = 0;
  /// How many completions are read, when `before` were.
  virtual refusal consumed(std::uint32_t before, std::uint32_t& now) = 0;
  /// Whether every entry that was not done when a queue failed gets a completion of its own.
  virtual bool flushes_each() const = 0;

 protected:
  /// Entries and completions are of this thread alone, by the order of doorbells and owner bits;
  /// the word that hands them over is atomic.
  template <class T>
  static T load(T const* at) {
    return std::atomic_ref(*const_cast<T*>(at)).load(std::memory_order_acquire);
  }
  static void store_last_word(std::byte* at, std::uint32_t value) {
    std::atomic_ref(*reinterpret_cast<std::uint32_t*>(at)).store(value, std::memory_order_release);
  }
  queue_pair queue_;
};

std::unique_ptr<queue_reader> make_mlx5_reader(queue_pair const& q);
std::unique_ptr<queue_reader> make_bnxt_reader(queue_pair const& q, std::uint32_t first_packet);
std::unique_ptr<queue_reader> make_ionic_reader(queue_pair const& q);

}  // namespace ferry::test
