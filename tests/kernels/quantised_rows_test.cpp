// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/kernels/quantised_rows.hpp>

#include "kernels/register_worlds.hpp"

namespace {

using namespace ferry;
using namespace ferry::oracle;

TEST(quantised_rows, are_those_of_the_oracle) {
  for (wire format : {wire::fp8_e4m3, wire::fp8_e4m3fnuz, wire::fp8_ue8m0})
    for (int hidden : {128, 7296})
      run_in_registers({.hidden = hidden, .tokens = dtype::bf16, .wire = format}, 2);
}

}  // namespace
