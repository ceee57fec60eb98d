// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The `team` concept: the smallest group of lanes that moves a row together.
///
/// A team is a CPU thread (1 lane), a CUDA warp (32) or a HIP wave (64). Teams come in blocks that
/// share a barrier and some scratch memory; on a CPU a block is one team. Kernels see only this
/// contract, never a width. Who must call: L = each lane for itself, also in a branch that only
/// some lanes take; T = all lanes of the team; B = all teams of the block.
#pragma once

#include <ferry/base/platform.hpp>
#include <ferry/exec/flag.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace ferry {

/// 16 bytes: what a lane of a GPU moves at once.
struct alignas(16) piece {
  std::uint32_t word[4];
};

/// Contract of a team.
///   lanes              lanes that run in step
///   columns            consecutive row elements that one lane converts at a time; a divisor or a
///                      multiple of scale_block / lanes, so that a scale block never straddles
///                      teams
///   row_pieces         most pieces of a row that a lane holds at once
///   chunk              what one lane copies at a time (a piece on a GPU, 64 bytes on a CPU)
///   codes              how fp8 codes are made: the contract of software_codes
///   mask               an unsigned integer with a bit per lane
///   lane() leader()    L  this lane's number; whether it is lane 0
///   index() count()    L  this team's number within its block; teams per block
///   block() blocks()   L  this block's number; blocks of the launch
///   broadcast(v, lane) T  lane's v, to all lanes
///   any(b) ballot(b)   T  whether some lane says so; which lanes do
///   max_over<G>(v)     T  the largest v among each G neighbouring lanes, G a power of two
///   sum_to(v)          T  the sum of v over the lanes up to this one
///   load_piece(p) store_piece(p, v)
///                      L  16 bytes of memory of this rank, at a multiple of 16
///   sync()             T  orders memory among the team's lanes
///   drain()            T  waits for this team's own stores: the block's publisher may release them
///   block_sync()       B  barrier of the block, memory included
///   block_all(b)       B  barrier; whether every lane of every team said so
///   fetch_add(p, v)    L  atomically adds to memory of this rank only; there are no remote atomics
///   wait(what, word, value)  L  waits until the word's epoch is what.epoch or later, acquires what
///                      the word covers, and returns the word in `value`; false when the wait
///                      failed (deadline, dead peer, another team's failure): then leave, store
///                      nothing more
///   failed()           L  whether a wait of this rank has failed
///   row_scratch()      T  private memory of this team for one row in wire format with its scales
///   block_scratch()    B  fast memory that the block's teams share
template <class Team>
concept team = requires(Team const& t, bool b, float f, std::uint64_t* word, std::uint32_t* number,
                        awaited const& what, std::uint64_t& value, std::byte* bytes,
                        piece const& p) {
  { Team::lanes } -> std::convertible_to<int>;
  { Team::columns } -> std::convertible_to<int>;
  { Team::row_pieces } -> std::convertible_to<int>;
  typename Team::codes;
  typename Team::chunk;
  typename Team::mask;
  { t.lane() } -> std::same_as<int>;
  { t.leader() } -> std::same_as<bool>;
  { t.index() } -> std::same_as<int>;
  { t.count() } -> std::same_as<int>;
  { t.block() } -> std::same_as<int>;
  { t.blocks() } -> std::same_as<int>;
  { t.broadcast(f, 0) } -> std::same_as<float>;
  { t.any(b) } -> std::same_as<bool>;
  { t.ballot(b) } -> std::same_as<typename Team::mask>;
  { t.template max_over<1>(f) } -> std::same_as<float>;
  { t.sum_to(std::int64_t{1}) } -> std::same_as<std::int64_t>;
  { t.load_piece(bytes) } -> std::same_as<piece>;
  t.store_piece(bytes, p);
  t.sync();
  t.drain();
  t.block_sync();
  { t.block_all(b) } -> std::same_as<bool>;
  { t.fetch_add(number, std::uint32_t{1}) } -> std::same_as<std::uint32_t>;
  { t.wait(what, word, value) } -> std::same_as<bool>;
  { t.failed() } -> std::same_as<bool>;
  { t.row_scratch() } -> std::same_as<std::byte*>;
  { t.block_scratch() } -> std::same_as<std::byte*>;
};

}  // namespace ferry
