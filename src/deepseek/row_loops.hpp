// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The model's own inner loops (all that is no matrix product) on a CPU: its kernels over the one
/// strip of a thread, built once per x86-64 level. Every sum has its order written down and nothing
/// is contracted, so all levels give the same bits, and so do other devices.
#pragma once

#include <ferry/deepseek/kernels/add_rows.hpp>
#include <ferry/deepseek/kernels/attend.hpp>
#include <ferry/deepseek/kernels/choose_experts.hpp>
#include <ferry/deepseek/kernels/decode_rows.hpp>
#include <ferry/deepseek/kernels/fill_cache.hpp>
#include <ferry/deepseek/kernels/gate_rows.hpp>
#include <ferry/deepseek/kernels/narrow_rows.hpp>
#include <ferry/deepseek/kernels/next_token.hpp>
#include <ferry/deepseek/kernels/normalise_rows.hpp>
#include <ferry/deepseek/kernels/quantise_rows.hpp>
#include <ferry/deepseek/kernels/rotate.hpp>

namespace ferry::deepseek {

/// Each runs its kernel to the end, on the calling thread.
struct row_loops {
  void (*attend)(deepseek::attend const&);
  void (*gate)(gate_rows const&);
  void (*normalise)(normalise_rows const&);
  void (*add)(add_rows const&);
  void (*narrow)(narrow_rows const&);
  void (*quantise)(quantise_rows const&);
  void (*decode)(decode_rows const&);
  void (*rotate)(rotate_heads const&);
  void (*fill)(fill_cache const&);
  void (*choose)(choose_experts const&);
  void (*next)(next_token const&);
};

/// Those of one level (level_v2, level_v3, level_v4 of exec/cpu/code_level.hpp).
template <class Level>
row_loops const& row_loops_of();

/// Those of the chosen level.
row_loops const& loops();

}  // namespace ferry::deepseek
