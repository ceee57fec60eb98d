// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The `executor` concept: what starts teams on a device.
#pragma once

#include <ferry/exec/team.hpp>

#include <concepts>

namespace ferry {

/// Contract of an executor: `run(work)` calls `work(index, teams())` once for every index below
/// `teams()`, after all earlier calls. `work` makes its team from the index and runs a kernel on
/// it.
template <class Executor, class Work>
concept executor = std::invocable<Work const&, int, int> &&
    requires(Executor& e, Work const& work) {
  { e.teams() } -> std::convertible_to<int>;
  e.run(work);
};

}  // namespace ferry
