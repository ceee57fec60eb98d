// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The picture of ferry-place.
#pragma once

#include "solve.hpp"

#include <string>

namespace ferry::place_tool {

/// An SVG: one row a layer, one column for the present placement and each policy, and in each field
/// a bar for every rank's load over the mean.
std::string picture_of(comparison const& all);

}  // namespace ferry::place_tool
