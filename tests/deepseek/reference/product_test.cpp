// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/deepseek/reference/product.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ferry::deepseek::reference {
namespace {

using ::testing::ElementsAre;

TEST(reference_product, multiplies_rows_of_weights_with_a_row) {
  float const w[] = {1, 2, 3, 0, -1, 0.5F};
  matrix<float const> const weights = dense<float const>(w, 2, 3);
  EXPECT_THAT(product(weights, std::vector<double>{1, 10, 100}), ElementsAre(321, 40));
  EXPECT_THAT(product(weights, table{{1, 0, 0}, {0, 0, 2}}),
              ElementsAre(ElementsAre(1, 0), ElementsAre(6, 1)));
}

TEST(reference_product, reads_rows_at_their_stride) {
  float const w[] = {1, 2, 9, 3, 4, 9};
  EXPECT_THAT(to_table({w, 2, 2, 3}), ElementsAre(ElementsAre(1, 2), ElementsAre(3, 4)));
}

}  // namespace
}  // namespace ferry::deepseek::reference
