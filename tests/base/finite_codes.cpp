// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// Compiled for x86-64-v3, so nothing here may be an inline function that other files share.

#include "base/finite_codes.hpp"

#include <ferry/base/block_scale.hpp>

namespace ferry {

bool finite_codes_use_fma() {
  return FERRY_HAS_FMA && (!FERRY_NEEDS_LEVEL_V3 || FERRY_CPU_KNOWS("v3"));
}

void finite_codes(float const* block, std::size_t n, float scale, bool fnuz, std::uint32_t* codes) {
  for (std::size_t i = 0; i < n; ++i)
    codes[i] = fnuz ? finite_code_bits<e4m3fnuz>(block[i], scale)
                    : finite_code_bits<e4m3>(block[i], scale);
}
void finite_codes(float const* block, std::size_t n, e8m0 scale, std::uint32_t* codes) {
  for (std::size_t i = 0; i < n; ++i) codes[i] = finite_code_bits(block[i], scale);
}

}  // namespace ferry
