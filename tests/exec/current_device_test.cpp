// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "exec/current_device.hpp"

#include "exec/emulated/emulated_backend.hpp"

#include <gtest/gtest.h>

namespace {

using namespace ferry;

TEST(current_device, is_chosen_for_a_while_and_the_one_before_given_back) {
  device const narrow = device::open("emulated:32").value();
  device const wide = device::open("emulated:64").value();
  EXPECT_FALSE(check_current_emulated(32)) << "this thread has chosen none";
  {
    auto const outer = current_device::make(wide).value();
    EXPECT_TRUE(check_current_emulated(64));
    {
      auto const inner = current_device::make(narrow).value();
      EXPECT_TRUE(check_current_emulated(32));
      auto const again = current_device::make(narrow).value();
      EXPECT_TRUE(check_current_emulated(32));
    }
    EXPECT_TRUE(check_current_emulated(64));
  }
  EXPECT_EQ(check_current_emulated(64).error().code, error_code::device);
}

TEST(current_device, of_the_cpu_changes_nothing) {
  auto const outer = current_device::make(device::open("emulated:64").value()).value();
  auto const cpu = current_device::make(device()).value();
  EXPECT_TRUE(check_current_emulated(64));
}

}  // namespace
