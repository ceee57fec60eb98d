// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The `executor` concept: what starts teams on a device.
#pragma once

#include <ferry/exec/team.hpp>

#include <concepts>

namespace ferry {

/// Contract of an executor: `run(kernel, args...)` calls `kernel(team, args...)` once for every
/// team that it has, and orders the call after earlier ones. `teams()` says how many those are.
template <class Executor, class Kernel, class... Args>
concept executor = requires(Executor& e, Kernel const& kernel, Args const&... args) {
  { e.teams() } -> std::convertible_to<int>;
  e.run(kernel, args...);
};

}  // namespace ferry
