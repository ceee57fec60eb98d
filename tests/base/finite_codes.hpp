// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Codes of blocks, computed by code that is compiled for CPUs with fma.
#pragma once

#include <ferry/base/exponent8.hpp>

#include <cstddef>
#include <cstdint>

namespace ferry {

/// Whether this CPU runs the functions below, and they take the way with fma.
bool finite_codes_use_fma();

/// finite_code_bits() of each of n elements: e4m3, or e4m3fnuz, under an f32 scale; or under a
/// power of two.
void finite_codes(float const* block, std::size_t n, float scale, bool fnuz, std::uint32_t* codes);
void finite_codes(float const* block, std::size_t n, e8m0 scale, std::uint32_t* codes);

}  // namespace ferry
