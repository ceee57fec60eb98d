// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "deepseek/row_loops.hpp"

#include <ferry/exec/cpu/code_level.hpp>

namespace ferry::deepseek {

template <>
row_loops const& row_loops_of<level_v2>();
template <>
row_loops const& row_loops_of<level_v3>();
template <>
row_loops const& row_loops_of<level_v4>();

namespace {

row_loops const& choose() {
  // A wrong FERRY_CPU_ISA is refused where a model is loaded; pieces used by themselves go on.
  auto const chosen = chosen_code_level();
  switch (chosen ? *chosen : best_code_level()) {
    case code_level::v4: return row_loops_of<level_v4>();
    case code_level::v3: return row_loops_of<level_v3>();
    case code_level::v2: break;
  }
  return row_loops_of<level_v2>();
}

}  // namespace

row_loops const& loops() {
  static row_loops const& chosen = choose();
  return chosen;
}

}  // namespace ferry::deepseek
