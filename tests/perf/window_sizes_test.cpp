// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "window_sizes.hpp"

#include <gtest/gtest.h>

namespace {

using ferry::bench::deepep_low_latency_bytes;

TEST(bench_window_sizes, are_those_that_deepep_states_for_its_low_latency_mode) {
  // 256 experts, 128 tokens, 7168 columns: 1.78 GiB.
  EXPECT_EQ(deepep_low_latency_bytes(256, 128, 7168),
            2u * (1024 + 256u * 128 * 14560 + 256u * 128 * 14560));
  // One expert: a message to send is longer than one to combine for wide rows only by its header.
  EXPECT_EQ(deepep_low_latency_bytes(1, 2, 128), 2u * (128 + 2 * 272 + 2 * 272));
}

}  // namespace
