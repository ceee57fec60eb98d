// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/exec/cpu/code_level.hpp>

#include "base/fail.hpp"

#include <cstdlib>

namespace ferry {

code_level best_code_level() {
  // Which levels a build holds is a matter of src/kernels/CMakeLists.txt.
  if (FERRY_HAS_LEVEL_V4 && FERRY_CPU_KNOWS("v4")) return code_level::v4;
  if (FERRY_HAS_LEVEL_V3 && FERRY_CPU_KNOWS("v3")) return code_level::v3;
  return code_level::v2;
}

namespace {

result<code_level> choose() {
  char const* wanted = std::getenv("FERRY_CPU_ISA");
  code_level const best = best_code_level();
  if (!wanted || !*wanted) return best;
  for (code_level level : {code_level::v2, code_level::v3, code_level::v4}) {
    if (wanted != fmt::format("v{}", static_cast<int>(level))) continue;
    if (level > best)
      return fail(error_code::unsupported,
                  "FERRY_CPU_ISA={}, but this machine and build have v{} at most", wanted,
                  static_cast<int>(best));
    return level;
  }
  return fail(error_code::invalid_argument, "FERRY_CPU_ISA={}; it can be v2, v3 or v4", wanted);
}

}  // namespace

result<code_level> chosen_code_level() {
  static result<code_level> const chosen = choose();
  return chosen;
}

}  // namespace ferry
