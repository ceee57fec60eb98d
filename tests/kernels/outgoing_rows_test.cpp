// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/kernels/outgoing_rows.hpp>

#include "kernels/register_worlds.hpp"

namespace {

using namespace ferry;
using namespace ferry::oracle;

TEST(outgoing_rows, copy_finished_rows_in_registers) {
  run_in_registers({.hidden = 1032, .tokens = dtype::bf16, .wire = wire::bf16}, 2);
  run_in_registers({.hidden = 8, .tokens = dtype::fp16, .wire = wire::fp16}, 2);
  run_in_registers({.hidden = 128, .tokens = dtype::bf16, .wire = wire::opaque}, 3);
}

TEST(outgoing_rows, quantise_in_registers) {
  for (wire format : {wire::fp8_e4m3, wire::fp8_e4m3fnuz, wire::fp8_ue8m0})
    for (int hidden : {128, 1280})
      run_in_registers({.hidden = hidden, .tokens = dtype::bf16, .wire = format}, 2);
}

}  // namespace
