// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// A team of many lanes on a GPU: what both vendors share, over the instructions of one.
#pragma once

#include <ferry/exec/gpu/gpu_waits.hpp>
#include <ferry/exec/team.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace ferry {

/// What the teams of a block share, in the block's own fast memory.
struct gpu_block_memory {
  static constexpr std::size_t scratch_bytes = 8 << 10;
  alignas(16) std::byte scratch[scratch_bytes];
  /// Votes of three barriers in turn: one is voted in, one may still be read, one is made ready.
  std::uint32_t objections[3];
};

/// One lane of a team. `Device` gives the instructions (exec/gpu/<vendor>/device.hpp).
template <class Device>
class gpu_team {
 public:
  static constexpr int lanes = Device::lanes;
  static constexpr int columns = 8;
  static constexpr int row_pieces = 7;
  using chunk = piece;
  using mask = typename Device::mask;
  using codes = typename Device::codes;

  /// To be made by every lane of a block, which meet here.
  FERRY_FN gpu_team(int blocks, int teams, gpu_waits const& waits, gpu_block_memory& memory,
                    std::byte* scratch, std::size_t scratch_stride)
      : blocks_(blocks),
        teams_(teams),
        index_(Device::team()),
        waits_(waits),
        memory_(memory),
        scratch_(scratch +
                 static_cast<std::size_t>(Device::block() * teams + index_) * scratch_stride) {
    if (index_ == 0 && Device::lane() < 3) memory_.objections[Device::lane()] = 0;
    Device::block_sync();
  }

  FERRY_FN int lane() const { return Device::lane(); }
  FERRY_FN bool leader() const { return Device::lane() == 0; }
  FERRY_FN int index() const { return index_; }
  FERRY_FN int count() const { return teams_; }
  FERRY_FN int block() const { return Device::block(); }
  FERRY_FN int blocks() const { return blocks_; }

  template <class T>
  FERRY_FN T broadcast(T value, int lane) const {
    return in_words(value, [&](std::uint32_t w) { return Device::broadcast(w, lane); });
  }
  FERRY_FN bool any(bool b) const { return Device::ballot(b) != 0; }
  FERRY_FN mask ballot(bool b) const { return Device::ballot(b); }
  template <int Group>
  FERRY_FN float max_over(float value) const {
    return max_from<Group, 1>(value);
  }
  FERRY_FN std::int64_t sum_to(std::int64_t value) const {
    FERRY_UNROLL
    for (int step = 1; step < lanes; step *= 2) {
      int const from = lane() - step;
      std::int64_t const other = in_words(
          value, [&](std::uint32_t w) { return Device::from_lane(w, from & (lanes - 1)); });
      value += from >= 0 ? other : 0;
    }
    return value;
  }
  FERRY_FN void sync() const { Device::sync(); }
  FERRY_FN void drain() const { Device::drain(); }
  FERRY_FN void block_sync() const { Device::block_sync(); }
  FERRY_FN bool block_all(bool b) const {
    // One barrier: the word of the next vote was last read before the barrier of the vote before
    // this one.
    int const next = turn_ == 2 ? 0 : turn_ + 1;
    if (index_ == 0 && leader()) memory_.objections[next] = 0;
    if (any(!b) && leader()) memory_.objections[turn_] = 1;
    Device::block_sync();
    bool const all = memory_.objections[turn_] == 0;
    turn_ = next;
    return all;
  }
  template <class T>
  FERRY_FN T fetch_add(T* at, T value) const {
    return Device::add(at, value);
  }

  FERRY_FN piece load_piece(std::byte const* from) const { return Device::load_piece(from); }
  FERRY_FN void store_piece(std::byte* to, piece const& v) const { Device::store_piece(to, v); }

  FERRY_FN bool wait(awaited const& what, std::uint64_t const* word, std::uint64_t& value) const {
    value = Device::load_word(word);
    bool const arrived =
        has_reached(what.kind, value, what.epoch) || wait_longer(what, word, value);
    Device::acquire();
    return arrived;
  }
  FERRY_FN bool failed() const { return Device::load_word(waits_.failed) != 0; }
  FERRY_FN std::byte* row_scratch() const { return scratch_; }
  FERRY_FN std::byte* block_scratch() const { return memory_.scratch; }

 private:
  template <class T, class F>
  FERRY_FN static T in_words(T value, F const& f) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8);
    if constexpr (sizeof(T) == 4) {
      return __builtin_bit_cast(T, f(__builtin_bit_cast(std::uint32_t, value)));
    } else {
      static_assert(std::is_integral_v<T>);
      auto const bits = static_cast<std::uint64_t>(value);
      std::uint64_t const low = f(static_cast<std::uint32_t>(bits));
      std::uint64_t const high = f(static_cast<std::uint32_t>(bits >> 32));
      return static_cast<T>(high << 32 | low);
    }
  }
  template <int Group, int Step>
  FERRY_FN static float max_from(float value) {
    if constexpr (Step < Group) {
      float const other = Device::template other_half<Step>(value);
      return max_from<Group, 2 * Step>(other > value ? other : value);
    } else {
      return value;
    }
  }

  // Looks again and again, more seldom as time goes by, until the word is there, another wait of
  // this rank has failed, or the deadline has passed.
  FERRY_FN bool wait_longer(awaited const& what, std::uint64_t const* word,
                            std::uint64_t& value) const {
    std::uint64_t const start = Device::clock();
    bool said = false, arrived = false;
    for (int turn = 1;; turn = turn < longest_pause ? 2 * turn : turn) {
      for (int i = 0; i < turn; ++i) Device::pause();
      value = Device::load_word(word);
      arrived = has_reached(what.kind, value, what.epoch);
      if (arrived || failed()) break;
      std::uint64_t const waited = Device::clock() - start;
      if (waited > waits_.timeout) {
        fail(what, value >> epoch_shift(what.kind));
        break;
      }
      if (!said && waited > waits_.patience) {
        say_whom(1 + static_cast<std::uint64_t>(what.rank));
        said = true;
      }
    }
    if (said) say_whom(0);
    return arrived;
  }
  FERRY_FN void say_whom(std::uint64_t rank_after) const {
    Device::store_word(&waits_.status->waiting, rank_after);
  }
  // R9: one record, in this rank's own window; the first one stays.
  FERRY_FN void fail(awaited const& what, std::uint64_t seen) const {
    if (Device::claim(&waits_.status->failed, status_record::being_written)) {
      say(what, seen);
      Device::release();
      Device::store_word(&waits_.status->failed, std::uint64_t{status_record::complete});
      Device::release();
      if (waits_.told) Device::store_word(waits_.told, std::uint32_t{1});
    }
    Device::store_word(waits_.failed, std::uint32_t{1});
    Device::release();
  }

  // Field by field: a record that is copied whole would lie in memory of its own first.
  FERRY_FN void say(awaited const& what, std::uint64_t seen) const {
    failure& record = waits_.status->record;
    say_word(&record.code, error_code::timeout);
    say_word(&record.rank, what.rank);
    say_word(&record.wait.kind, what.kind);  // a byte, and the padding behind it
    say_word(&record.wait.rank, what.rank);
    say_word(&record.wait.chunk, what.chunk);
    say_long(&record.wait.epoch, what.epoch);
    say_word(&record.slot, waits_.slot);
    say_long(&record.seen, seen);
  }
  FERRY_FN static void say_long(std::uint64_t* at, std::uint64_t value) {
    auto* const halves = reinterpret_cast<std::uint32_t*>(at);
    Device::store_word(halves, static_cast<std::uint32_t>(value));
    Device::store_word(halves + 1, static_cast<std::uint32_t>(value >> 32));
  }
  template <class T>
  FERRY_FN static void say_word(T* at, T value) {
    Device::store_word(reinterpret_cast<std::uint32_t*>(at), static_cast<std::uint32_t>(value));
  }

  static constexpr int longest_pause = 16;

  int blocks_;
  int teams_;
  int index_;
  gpu_waits const& waits_;
  gpu_block_memory& memory_;
  std::byte* scratch_;
  mutable int turn_ = 0;
};

}  // namespace ferry
