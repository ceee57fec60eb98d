// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/kernels/outgoing_rows.hpp>

#include "kernels/register_worlds.hpp"

namespace {

using namespace ferry;
using namespace ferry::oracle;

// What no form in registers takes: other types, blocks that are not whole, rows at any address.
TEST(outgoing_rows, convert_through_memory) {
  run_in_registers({.hidden = 130, .tokens = dtype::f32, .wire = wire::fp8_e4m3}, 2);
  run_in_registers({.hidden = 9, .tokens = dtype::bf16, .wire = wire::bf16}, 2);
}

}  // namespace
