// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/exec/cpu/cpu_strip.hpp>

#include "contract/strip_inputs.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace {

using namespace ferry;

TEST(cpu_strip, keeps_the_contract) {
  test::strip_inputs const in = test::make_strip_inputs();
  std::vector<float> memory(test::check_strips::memory_of_a_strip);
  std::vector<std::int32_t> wrong(test::check_strips::num_checks, -1);
  cpu_strip<void, 4> const s;
  test::check_strips{&in, memory.data(), wrong.data()}(s);
  EXPECT_EQ(wrong, std::vector<std::int32_t>(wrong.size(), 0));
  EXPECT_EQ(s.index(), 0);
  EXPECT_EQ(s.count(), 1);
}

}  // namespace
