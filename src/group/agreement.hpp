// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Collective steps that succeed on all ranks or on none.
#pragma once

#include <ferry/group/bootstrap.hpp>

#include <chrono>

namespace ferry {

/// Tells every rank how it went here. A barrier too.
/// Returns  nothing when it went well everywhere; else this rank's own error, or that of the lowest
///          rank that has one, with its rank named
result<void> agree(bootstrap& ranks, result<void> const& mine, std::chrono::milliseconds timeout);

/// An error as another rank tells it.
error told_by(int rank, error const& what);

}  // namespace ferry
