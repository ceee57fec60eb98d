// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/deepseek/linear.hpp>

#include <ferry/base/number_formats.hpp>
#include <ferry/deepseek/reference/act_quant.hpp>
#include <ferry/deepseek/reference/product.hpp>

#include "deepseek/owned_matrix.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace ferry::deepseek {
namespace {

using test::owned_matrix;
using test::same_bits;

struct setting {
  dtype compute;
  row_calls calls;
};

class linear_in : public testing::TestWithParam<setting> {
 protected:
  linear pack(owned_matrix const& w) const {
    return linear::pack(w.view(), {.compute = GetParam().compute, .calls = GetParam().calls})
        .value();
  }
};

INSTANTIATE_TEST_SUITE_P(all, linear_in,
                         testing::Values(setting{dtype::f32, row_calls::probed},
                                         setting{dtype::f32, row_calls::sixteen},
                                         setting{dtype::bf16, row_calls::probed},
                                         setting{dtype::bf16, row_calls::sixteen}),
                         [](auto const& parameter) {
                           return std::string(to_string(parameter.param.compute)) +
                                  (parameter.param.calls == row_calls::probed ? "_probed"
                                                                              : "_sixteen");
                         });

void round_to(dtype type, owned_matrix& m) {
  if (type != dtype::bf16) return;
  for (float& v : m.values) v = to_float(from_float<bf16>(v));
}

TEST_P(linear_in, multiplies_as_the_reference_does) {
  for (auto [in, out] : {std::pair{1, 1}, {33, 17}, {96, 256}, {257, 48}, {1024, 130}}) {
    owned_matrix w("w", out, in);
    owned_matrix x("x", 21, in);
    owned_matrix y(21, out);
    ASSERT_TRUE(pack(w).apply(x.read(), y.view()));
    round_to(GetParam().compute, w);
    round_to(GetParam().compute, x);
    auto const expected = reference::product(w.view(), reference::to_table(x.read()));
    for (std::int64_t row = 0; row < x.rows; ++row) {
      EXPECT_LT(test::distance(y[row], expected[static_cast<std::size_t>(row)].data(), out),
                2e-6 * in + 1e-6)
          << in << " to " << out << ", row " << row;
    }
  }
}

TEST_P(linear_in, gives_a_row_the_same_bits_whatever_rows_stand_beside_it) {
  for (auto [in, out] : {std::pair{48, 256}, {256, 96}, {129, 65}, {1024, 64}}) {
    owned_matrix const w("w", out, in);
    owned_matrix const x("x", 140, in);
    linear const product = pack(w);
    owned_matrix alone(x.rows, out);
    for (std::int64_t row = 0; row < x.rows; ++row) {
      ASSERT_TRUE(product.apply(x.slice(row, 1), {alone.view()[row], 1, out, out}));
    }
    std::vector<std::int64_t> counts{40, 63, 64, 65, 127, 140};
    for (std::int64_t n = 1; n <= 33; ++n) counts.push_back(n);
    for (std::int64_t n : counts) {
      for (std::int64_t first : {std::int64_t{0}, (x.rows - n) / 2, x.rows - n}) {
        owned_matrix y(n, out);
        ASSERT_TRUE(product.apply(x.slice(first, n), y.view()));
        ASSERT_TRUE(same_bits(y[0], alone[first], n * out))
            << n << " rows from " << first << ", " << in << " to " << out;
      }
    }
  }
}

TEST_P(linear_in, reads_and_writes_rows_at_any_stride) {
  owned_matrix const w("w", 20, 24);
  owned_matrix const wide("x", 35, 40);
  owned_matrix narrow(35, 24);
  for (std::int64_t row = 0; row < 35; ++row) {
    std::copy_n(wide[row] + 7, 24, narrow.view()[row]);
  }
  linear const product = pack(w);
  owned_matrix expected(35, 20);
  ASSERT_TRUE(product.apply(narrow.read(), expected.view()));
  owned_matrix found("untouched", 35, 31);
  owned_matrix const before = found;
  ASSERT_TRUE(product.apply({wide[0] + 7, 35, 24, 40}, {found.view()[0] + 3, 35, 20, 31}));
  for (std::int64_t row = 0; row < 35; ++row) {
    EXPECT_TRUE(same_bits(found[row] + 3, expected[row], 20)) << row;
    EXPECT_TRUE(same_bits(found[row], before[row], 3)) << row;
    EXPECT_TRUE(same_bits(found[row] + 23, before[row] + 23, 8)) << row;
  }
}

TEST_P(linear_in, gives_every_thread_the_same_bits) {
  owned_matrix const w("w", 64, 64);
  owned_matrix const x("x", 23, 64);
  linear const product = pack(w);
  owned_matrix expected(23, 64);
  ASSERT_TRUE(product.apply(x.read(), expected.view()));
  std::vector<owned_matrix> found(4, owned_matrix(23, 64));
  std::vector<std::thread> threads;
  for (owned_matrix& y : found) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) EXPECT_TRUE(product.apply(x.read(), y.view()));
    });
  }
  for (std::thread& t : threads) t.join();
  for (owned_matrix const& y : found) EXPECT_TRUE(same_bits(y[0], expected[0], 23 * 64));
}

TEST_P(linear_in, rounds_its_input_to_fp8_where_asked) {
  owned_matrix const w("w", 9, 300);
  owned_matrix x("x", 18, 300, 3);
  linear const product = linear::pack(w.view(), {.compute = GetParam().compute,
                                                 .quantise_input = true,
                                                 .calls = GetParam().calls})
                             .value();
  owned_matrix found(18, 9);
  ASSERT_TRUE(product.apply(x.read(), found.view()));
  for (std::int64_t row = 0; row < x.rows; ++row) {
    auto const q = reference::act_quant<e4m3>({x[row], 300});
    for (std::size_t i = 0; i < 300; ++i) {
      x.view()[row][i] = to_float(q.codes[i]) * q.scales[i / scale_block];
    }
  }
  owned_matrix expected(18, 9);
  ASSERT_TRUE(pack(w).apply(x.read(), expected.view()));
  EXPECT_TRUE(same_bits(found[0], expected[0], 18 * 9));
}

TEST(linear, uses_sixteen_rows_where_asked) {
  owned_matrix const w("w", 8, 8);
  EXPECT_TRUE(linear::pack(w.view(), {.calls = row_calls::sixteen}).value().uses_sixteen_rows());
}

TEST(linear, packs_zeros_and_infinities) {
  owned_matrix w(3, 40);
  owned_matrix const x("x", 2, 40);
  owned_matrix y("y", 2, 3);
  ASSERT_TRUE(linear::pack(w.view()).value().apply(x.read(), y.view()));
  EXPECT_THAT(y.values, testing::Each(0.0F));
  w.values.assign(w.values.size(), HUGE_VALF);
  ASSERT_TRUE(linear::pack(w.view()).value().apply(x.read(), y.view()));
  EXPECT_THAT(y.values, testing::Each(testing::ResultOf([](float v) { return std::isnan(v); },
                                                        testing::IsTrue())));
}

TEST(linear, does_nothing_for_no_rows) {
  owned_matrix const w("w", 8, 8);
  EXPECT_TRUE(linear::pack(w.view()).value().apply({nullptr, 0, 8, 8}, {nullptr, 0, 8, 8}));
}

TEST(linear, refuses_what_does_not_fit) {
  owned_matrix const w("w", 8, 6);
  owned_matrix const x("x", 4, 6);
  owned_matrix y(4, 8);
  linear const product = linear::pack(w.view()).value();
  auto const refused = product.apply({x[0], 4, 5, 6}, y.view());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, error_code::invalid_argument);
  EXPECT_THAT(refused.error().message, testing::HasSubstr("4 by 5 in"));
  EXPECT_FALSE(product.apply(x.read(), {y.values.data(), 3, 8, 8}));
  EXPECT_FALSE(linear().apply(x.read(), y.view()));
  EXPECT_FALSE(linear::pack({w[0], 0, 6, 6}));
  EXPECT_FALSE(linear::pack(w.view(), {.compute = dtype::fp16}));
}

}  // namespace
}  // namespace ferry::deepseek
