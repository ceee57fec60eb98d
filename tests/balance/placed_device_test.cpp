// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// The same kernels by lanes: choices are mapped and loads counted as on the CPU.

#include <gtest/gtest.h>

#include "balance/placed_steps.hpp"
#include "exchange/test_device.hpp"

namespace {

using namespace ferry;
using namespace ferry::oracle;

TEST(placed_device, every_choice_reaches_its_expert_whatever_the_placement) {
  if (on_gpu()) GTEST_SKIP() << "the test's experts run on the host";
  for (std::uint64_t seed = 201; seed <= 206; ++seed)
    run_placed_world(seed, 16, test_device, [](device const& d) { return queue::on(d).value(); });
}

}  // namespace
