// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "deepseek/fixed_products.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace ferry::deepseek {
namespace {

TEST(fixed_products, know_the_alignment_that_all_rows_share) {
  EXPECT_EQ(alignment_of({0, 1024}), 256);
  EXPECT_EQ(alignment_of({256, 48}), 16);
  EXPECT_EQ(alignment_of({64, 6}), 2);
}

TEST(fixed_products, are_none_on_the_cpu) {
  auto const none = fixed_products::open(device());
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, error_code::unsupported);
}

// Two heads of three rows that lie side by side, and what is behind the rows that were asked for.
TEST(fixed_products, multiply_groups_that_lie_apart) {
  device const where = device::open("emulated:32").value();
  auto const library = fixed_products::open(where).value();
  queue q = queue::on(where).value();
  product_shape const shape{.rows = 3,
                            .in = 2,
                            .out = 2,
                            .groups = 2,
                            .x_stride = 4,
                            .x_group = 2,
                            .y_stride = 5,
                            .y_group = 3};
  std::vector<float> const x = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  std::vector<float> const weights = {1, 0, 0, 1, 2, 0, 1, 1};  // [groups, out, in]
  std::vector<float> y(15, -1);
  auto const there = [&](auto const& values) {
    auto memory = where.allocate(memory_kind::local, values.size() * sizeof(float)).value();
    q.copy(memory.data(), values.data(), values.size() * sizeof(float)).value();
    return memory;
  };
  device_memory const x_there = there(x), weights_there = there(weights), y_there = there(y);
  product_plans plans;
  product_plan const* const plan = plans.find(library, shape).value();
  ASSERT_NE(plan, nullptr);
  EXPECT_EQ(plans.find(library, shape).value(), plan) << "made once";
  plan->multiply(q, x_there.data(), weights_there.data(), reinterpret_cast<float*>(y_there.data()))
      .value();
  q.copy(y.data(), y_there.data(), y.size() * sizeof(float)).value();
  q.wait(std::chrono::seconds(10)).value();
  EXPECT_EQ(y, (std::vector<float>{1, 2, -1, 6, 7, 5, 6, -1, 14, 15, 9, 10, -1, 22, 23}));

  product_shape odd = shape;
  odd.alignment_bytes = 2;
  EXPECT_EQ(plans.find(library, odd).value(), nullptr) << "what the library does not serve";
}

}  // namespace
}  // namespace ferry::deepseek
