// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Ranks in messages: "rank 3", "ranks 1, 4, 5".
#pragma once

#include <string>
#include <vector>

namespace ferry {

/// Names all of up to 16 ranks, and counts the rest.
std::string names_of(std::vector<int> const& ranks);

}  // namespace ferry
