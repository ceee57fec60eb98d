// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The `delivery` concept: how a kernel reaches a peer's window.
#pragma once

#include <ferry/exec/team.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace ferry {

/// Contract of a delivery, inlined into kernels. Offsets are bytes from the start of a window,
/// equal on all ranks.
/// A window's flags and rows may lie in memories of different kinds: publish() goes to the flags
/// always, put() to the rows.
///   own_flags()      this rank's window, for the offsets of flags
///   own_rows()       this rank's window, for the offsets of rows
///   put(team, rank, offset, from, bytes)
///                    T  copies `bytes` to the window of `rank`; promises no order and no time;
///                    `from` may be reused once it returns
///   put_value(team, rank, offset, lane_offset, value)
///                    L  the same for 1, 4 or 16 bytes that a lane holds, at `offset` (on all lanes
///                    the same, as `rank` is) + `lane_offset`
///   release(team)    T  by one team of the block, after each team has drained and a block barrier:
///                    whatever this block put or read before comes before every word that this
///                    team publishes from here to its next put
///   publish(team, rank, kind, offset, word)
///                    L  by lane rank % Team::lanes, after release(): stores the word in the window
///                    of `rank`, and wakes who sleeps on it
template <class Net, class Team>
concept delivery = team<Team> &&
    requires(Net const& net, Team const& t, std::size_t offset, std::byte const* from) {
  { net.own_flags() } -> std::same_as<std::byte*>;
  { net.own_rows() } -> std::same_as<std::byte*>;
  net.put_value(t, 0, offset, std::uint32_t{0}, piece{});
  net.put_value(t, 0, offset, std::uint32_t{0}, std::uint32_t{0});
  net.put_value(t, 0, offset, std::uint32_t{0}, std::uint8_t{0});
  net.release(t);
  net.put(t, 0, offset, from, offset);
  net.publish(t, 0, flag::done, offset, std::uint64_t{0});
};

}  // namespace ferry
