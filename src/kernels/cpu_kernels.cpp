// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "kernels/cpu_kernels.hpp"
#include "kernels/relay_kernels.hpp"

namespace ferry {

cpu_kernels const& cpu_kernels_level_v2();
cpu_kernels const& cpu_kernels_level_v3();
cpu_kernels const& cpu_kernels_level_v4();

cpu_kernels const& cpu_kernels_for(code_level level) {
  // A discarded branch names no function, so a level that was not built is not missed.
  if constexpr (FERRY_HAS_LEVEL_V4) {
    if (level == code_level::v4) return cpu_kernels_level_v4();
  }
  if constexpr (FERRY_HAS_LEVEL_V3) {
    if (level >= code_level::v3) return cpu_kernels_level_v3();
  }
  return cpu_kernels_level_v2();
}

relay_kernels const& relay_kernels_level_v2();
relay_kernels const& relay_kernels_level_v3();
relay_kernels const& relay_kernels_level_v4();

relay_kernels const& relay_kernels_for(code_level level) {
  if constexpr (FERRY_HAS_LEVEL_V4) {
    if (level == code_level::v4) return relay_kernels_level_v4();
  }
  if constexpr (FERRY_HAS_LEVEL_V3) {
    if (level >= code_level::v3) return relay_kernels_level_v3();
  }
  return relay_kernels_level_v2();
}

}  // namespace ferry
