// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/kernels/copied_rows.hpp>

#include "kernels/register_worlds.hpp"

namespace {

using namespace ferry;
using namespace ferry::oracle;

TEST(copied_rows, go_out_as_they_are) {
  run_in_registers({.hidden = 3848, .tokens = dtype::bf16, .wire = wire::bf16}, 2);
  run_in_registers({.hidden = 8, .tokens = dtype::fp16, .wire = wire::fp16}, 2);
  run_in_registers({.hidden = 128, .tokens = dtype::bf16, .wire = wire::opaque}, 3);
}

}  // namespace
