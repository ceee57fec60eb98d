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
///   own()            this rank's window
///   put(team, rank, offset, from, bytes)
///                    T  copies `bytes` to the window of `rank`; promises no order and no time;
///                    `from` may be reused once it returns
///   publish(team, rank, kind, offset, word)
///                    L  makes the word visible in the window of `rank` after everything that this
///                    block put there before (each team drained, then a block barrier), and wakes
///                    who sleeps on it
template <class Net, class Team>
concept delivery = team<Team> &&
    requires(Net const& net, Team const& t, std::size_t offset, std::byte const* from) {
  { net.own() } -> std::same_as<std::byte*>;
  net.put(t, 0, offset, from, offset);
  net.publish(t, 0, flag::done, offset, std::uint64_t{0});
};

}  // namespace ferry
