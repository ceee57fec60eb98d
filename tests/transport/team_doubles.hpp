// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Teams that do nothing but be teams, for tests of what teams do with rows.
#pragma once

#include <ferry/base/float8_codes.hpp>
#include <ferry/exec/team.hpp>

#include <cstddef>
#include <cstdint>

namespace ferry::test {

/// One lane of a team of N. Lanes do not run in step here: only code without votes may use it.
template <int N>
class lane_of {
 public:
  static constexpr int lanes = N;
  static constexpr int columns = scale_block;
  struct alignas(16) chunk {
    std::byte bytes[16];
  };
  using mask = std::uint64_t;
  static constexpr int row_pieces = 1;
  using codes = software_codes;

  explicit lane_of(int lane) : lane_(lane) {}

  int lane() const { return lane_; }
  bool leader() const { return lane_ == 0; }
  int index() const { return 0; }
  int count() const { return 1; }
  int block() const { return 0; }
  int blocks() const { return 1; }
  template <class T>
  T broadcast(T value, int) const {
    return value;
  }
  bool any(bool b) const { return b; }
  mask ballot(bool b) const { return b; }
  template <int Group>
  float max_over(float value) const {
    return value;
  }
  std::int64_t sum_to(std::int64_t value) const { return value; }
  piece load_piece(std::byte const* from) const { return *reinterpret_cast<piece const*>(from); }
  void store_piece(std::byte* to, piece const& v) const { *reinterpret_cast<piece*>(to) = v; }
  void sync() const {}
  void drain() const {}
  void block_sync() const {}
  bool block_all(bool b) const { return b; }
  template <class T>
  T fetch_add(T* at, T value) const {
    T const before = *at;
    *at += value;
    return before;
  }
  bool wait(awaited const&, std::uint64_t const* word, std::uint64_t& value) const {
    value = *word;
    return true;
  }
  bool failed() const { return false; }
  std::byte* row_scratch() const { return nullptr; }
  std::byte* block_scratch() const { return nullptr; }

 private:
  int lane_;
};
static_assert(team<lane_of<8>>);

/// A team of one lane.
class idle_team : public lane_of<1> {
 public:
  idle_team() : lane_of<1>(0) {}
};
static_assert(team<idle_team>);

}  // namespace ferry::test
