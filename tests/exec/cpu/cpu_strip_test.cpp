// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/exec/cpu/cpu_strip.hpp>

#include "contract/strip_contract.hpp"

#include <gtest/gtest.h>

namespace {

using namespace ferry;

TEST(cpu_strip, keeps_the_contract) {
  float memory[20];
  cpu_strip<void, 4> const s;
  test::expect_strip(s);
  test::expect_stores(s, memory);
  EXPECT_EQ(s.index(), 0);
  EXPECT_EQ(s.count(), 1);
}

}  // namespace
