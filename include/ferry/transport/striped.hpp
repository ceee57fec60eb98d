// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Several transports as one: the rails of a rank.
#pragma once

#include <ferry/transport/transport.hpp>

#include <memory>
#include <vector>

namespace ferry {

/// Puts to a rank take its rails in turn. A signal takes the first rail, and one that covers
/// earlier puts answers `try_again` until those on the other rails are settled; meanwhile puts to
/// its rank take the first rail too. Ranks may have different numbers of rails: two of them use as
/// many as both have.
/// Errors   invalid_argument there is no rail, or of several one cannot settle
result<std::unique_ptr<transport>> make_striped_transport(
    int num_ranks, std::vector<std::unique_ptr<transport>> rails);

}  // namespace ferry
