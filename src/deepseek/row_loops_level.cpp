// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// Compiled once per level, with FERRY_CPU_LEVEL naming its tag and
// FERRY_VECTOR_FLOATS the width of its vectors. No function of the standard library
// here: one that is not inlined would leave a symbol that other objects share.

#include "deepseek/row_loops.hpp"

#include <ferry/exec/cpu/code_level.hpp>
#include <ferry/exec/cpu/cpu_strip.hpp>

namespace ferry::deepseek {
namespace {

template <class Level, class Kernel>
void run(Kernel const& kernel) {
  Kernel const own = kernel;  // which no store can change: its fields stay in registers
  own(cpu_strip<Level, FERRY_VECTOR_FLOATS>{});
}

}  // namespace

template <class Level>
row_loops const& row_loops_of();

template <>
row_loops const& row_loops_of<FERRY_CPU_LEVEL>() {
  using level = FERRY_CPU_LEVEL;
  static constexpr row_loops all{
      run<level, attend>,         run<level, gate_rows>,    run<level, normalise_rows>,
      run<level, add_rows>,       run<level, narrow_rows>,  run<level, quantise_rows>,
      run<level, decode_rows>,    run<level, rotate_heads>, run<level, fill_cache>,
      run<level, choose_experts>, run<level, next_token>};
  return all;
}

}  // namespace ferry::deepseek
