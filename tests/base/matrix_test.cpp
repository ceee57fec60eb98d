// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/base/matrix.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace ferry {

TEST(matrix, finds_rows_at_their_stride) {
  std::vector<int> memory(20);
  matrix<int> const m{memory.data(), 4, 3, 5};
  EXPECT_EQ(m[0], memory.data());
  EXPECT_EQ(m[3], memory.data() + 15);
}

TEST(matrix, takes_dense_rows_as_wide_as_their_columns) {
  std::vector<float> memory(12);
  auto const m = dense(memory.data(), 4, 3);
  EXPECT_EQ(m.rows, 4);
  EXPECT_EQ(m.columns, 3);
  EXPECT_EQ(m[2], memory.data() + 6);
}

TEST(matrix, counts_the_stride_of_a_typed_tensor_in_bytes) {
  std::vector<std::byte> memory(64);
  tensor const packed{memory.data(), 4, 3, dtype::bf16};
  EXPECT_EQ(packed.stride_bytes(), 6);
  EXPECT_EQ(packed[2], memory.data() + 12);
  const_tensor const spread{memory.data(), 4, 3, dtype::bf16, 16};
  EXPECT_EQ(spread.stride_bytes(), 16);
  EXPECT_EQ(spread[3], memory.data() + 48);
}

}  // namespace ferry
