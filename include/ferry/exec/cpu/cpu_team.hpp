// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// A CPU thread as a team of one lane; the compiler's vectors do the rest.
#pragma once

#include <ferry/base/float8_codes.hpp>
#include <ferry/exec/cpu/streaming.hpp>
#include <ferry/exec/cpu/waiter.hpp>
#include <ferry/exec/team.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ferry {

/// One thread of a CPU executor. `Level` is the code level it is compiled for (code_level.hpp): it
/// keeps the levels' instantiations apart and changes nothing else.
template <class Level>
class cpu_team {
 public:
  static constexpr int lanes = 1;
  static constexpr int columns = 2 * scale_block;
  static constexpr int row_pieces = 1;
  struct chunk {
    alignas(1) std::byte bytes[64];
  };
  using mask = std::uint8_t;
  using codes = software_codes;

  /// `streams`: rows are so many that copies go past the caches.
  cpu_team(int index, int teams, waiter& waits, std::byte* scratch, std::byte* block_scratch,
           bool streams = false)
      : index_(index),
        teams_(teams),
        waits_(&waits),
        scratch_(scratch),
        block_scratch_(block_scratch),
        streams_(streams) {}

  FERRY_FN int lane() const { return 0; }
  FERRY_FN bool leader() const { return true; }
  FERRY_FN int index() const { return 0; }
  FERRY_FN int count() const { return 1; }
  FERRY_FN int block() const { return index_; }
  FERRY_FN int blocks() const { return teams_; }

  template <class T>
  FERRY_FN T broadcast(T value, int) const {
    return value;
  }
  FERRY_FN bool any(bool b) const { return b; }
  FERRY_FN mask ballot(bool b) const { return b; }
  template <int Group>
  FERRY_FN float max_over(float value) const {
    return value;
  }
  FERRY_FN std::int64_t sum_to(std::int64_t value) const { return value; }
  FERRY_FN piece load_piece(std::byte const* from) const {
    return *reinterpret_cast<piece const*>(from);
  }
  FERRY_FN void store_piece(std::byte* to, piece const& v) const {
    *reinterpret_cast<piece*>(to) = v;
  }
  FERRY_FN void sync() const {}
  FERRY_FN void drain() const {
    if (streams_) finish_streaming();
  }
  FERRY_FN void block_sync() const {}
  FERRY_FN bool block_all(bool b) const { return b; }

  template <class T>
  FERRY_FN T fetch_add(T* at, T value) const {
    return std::atomic_ref<T>(*at).fetch_add(value, std::memory_order_relaxed);
  }

  FERRY_FN bool wait(awaited const& what, std::uint64_t const* word, std::uint64_t& value) const {
    return waits_->wait(what, word, value);
  }
  FERRY_FN bool failed() const { return waits_->failed(); }
  FERRY_FN std::byte* row_scratch() const { return scratch_; }
  FERRY_FN std::byte* block_scratch() const { return block_scratch_; }

  /// How this team copies a row; short ones stay in the caches.
  FERRY_FN void copy(std::byte* to, std::byte const* from, std::size_t bytes) const {
    if (streams_ && bytes >= shortest_stream)
      stream_copy(to, from, bytes);
    else
      std::memcpy(to, from, bytes);
  }

 private:
  static constexpr std::size_t shortest_stream = 1024;

  int index_;
  int teams_;
  waiter* waits_;
  std::byte* scratch_;
  std::byte* block_scratch_;
  bool streams_;
};

static_assert(team<cpu_team<void>>);

}  // namespace ferry
