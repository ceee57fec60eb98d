// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/deepseek/experts.hpp>

#include <ferry/base/block_scale.hpp>
#include <ferry/base/number_formats.hpp>
#include <ferry/deepseek/reference/mlp.hpp>

#include "deepseek/owned_matrix.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ferry::deepseek {
namespace {

using test::owned_matrix;

constexpr int hidden = 130;  // a whole block of scales and a short one
constexpr int width = 20;

/// One row as the exchange would bring it, and what it means.
struct wire_row {
  std::vector<std::byte> codes;
  std::vector<std::byte> scales;
  std::vector<float> meaning;
};

template <class T>
void put(std::vector<std::byte>& to, T value) {
  auto const* bytes = reinterpret_cast<std::byte const*>(&value);
  to.insert(to.end(), bytes, bytes + sizeof value);
}

template <class T>
wire_row plain(float const* x) {
  wire_row row;
  for (int i = 0; i < hidden; ++i) {
    put(row.codes, from_float<T>(x[i]));
    row.meaning.push_back(to_float(from_float<T>(x[i])));
  }
  return row;
}

template <class T>
T code_of(float x, float scale) {
  return quantise<T>(x, scale);
}
template <class T>
T code_of(float x, e8m0 scale) {
  return quantise(x, scale);
}

template <class T, class ScaleOf>
wire_row blocks(float const* x, ScaleOf const& scale_of) {
  wire_row row;
  for (int first = 0; first < hidden; first += scale_block) {
    int const end = std::min(first + scale_block, hidden);
    block_range range;
    for (int i = first; i < end; ++i) range.add(x[i]);
    auto const scale = scale_of(range);
    put(row.scales, scale);
    for (int i = first; i < end; ++i) {
      T const code = code_of<T>(x[i], scale);
      put(row.codes, code);
      row.meaning.push_back(to_float(code) * to_float(scale));
    }
  }
  return row;
}

wire_row encode(wire w, float const* x) {
  switch (w) {
    case wire::bf16: return plain<bf16>(x);
    case wire::fp16: return plain<fp16>(x);
    case wire::fp8_e4m3: return blocks<e4m3>(x, [](block_range r) { return block_scale<e4m3>(r); });
    case wire::fp8_e4m3fnuz:
      return blocks<e4m3fnuz>(x, [](block_range r) { return block_scale<e4m3fnuz>(r); });
    case wire::fp8_ue8m0: return blocks<e4m3>(x, [](block_range r) { return block_exponent(r); });
    default: return plain<float>(x);
  }
}

/// Three experts of which the second gets no row, with gaps as alignment leaves them.
struct arrival {
  explicit arrival(wire w) : rows("rows", 200, hidden, 2) {
    for (std::int64_t i = 0; i < rows.rows; ++i) {
      wire_row const row = encode(w, rows[i]);
      codes.insert(codes.end(), row.codes.begin(), row.codes.end());
      scales.insert(scales.end(), row.scales.begin(), row.scales.end());
      meanings.push_back(row.meaning);
    }
    in.rows = {codes.data(), rows.rows, hidden, element_of(w)};
    if (is_fp8(w)) {
      auto const bytes = static_cast<std::int64_t>(scales.size()) / rows.rows;
      in.scales = dense(scales.data(), rows.rows, bytes);
    }
    in.num_local_experts = 3;
    in.starts = starts;
    in.counts = counts;
    in.end = &end;
    in.capacity = rows.rows;
  }
  owned_matrix rows;
  std::vector<std::byte> codes;
  std::vector<std::byte> scales;
  std::vector<std::vector<float>> meanings;
  std::int32_t starts[3] = {4, 24, 32};
  std::int32_t counts[3] = {17, 0, 130};
  std::int32_t end = 162;
  received in;
};

class experts_over : public testing::TestWithParam<wire> {
 protected:
  experts_over() {
    for (int e = 0; e < 3; ++e) {
      both_.emplace_back("both" + std::to_string(e), 2 * width, hidden, 0.2F);
      down_.emplace_back("down" + std::to_string(e), hidden, width, 0.2F);
      local_.push_back(mlp::make(both_.back().view(), down_.back().view()).value());
    }
  }
  void expect_results(experts const& tested, arrival const& a) {
    owned_matrix out("untouched", 200, hidden);
    owned_matrix const before = out;
    std::vector<float> scratch(tested.scratch_size());
    ASSERT_TRUE(tested.apply(a.in, out.view(), scratch));
    std::vector<bool> written(200);
    for (std::size_t e = 0; e < 3; ++e) {
      for (int i = 0; i < a.counts[e]; ++i) {
        int const position = a.starts[e] + i;
        int const row = a.in.index != nullptr ? a.in.index[position] : position;
        auto const& meaning = a.meanings[static_cast<std::size_t>(row)];
        auto const expected = reference::mlp(
            {both_[e].slice(0, width), both_[e].slice(width, width), down_[e].view()},
            {meaning.begin(), meaning.end()});
        EXPECT_LT(test::distance(out[position], expected.data(), hidden), 1e-4)
            << "expert " << e << " row " << i;
        written[static_cast<std::size_t>(position)] = true;
      }
    }
    for (std::int64_t i = 0; i < 200; ++i) {
      if (!written[static_cast<std::size_t>(i)]) {
        EXPECT_TRUE(test::same_bits(out[i], before[i], hidden)) << i;
      }
    }
  }
  std::vector<owned_matrix> both_, down_;
  std::vector<mlp> local_;
};

INSTANTIATE_TEST_SUITE_P(wires, experts_over,
                         testing::Values(wire::f32, wire::bf16, wire::fp16, wire::fp8_e4m3,
                                         wire::fp8_e4m3fnuz, wire::fp8_ue8m0),
                         [](auto const& parameter) {
                           return std::string(to_string(parameter.param));
                         });

TEST_P(experts_over, run_the_rows_before_each_of_them) {
  arrival const a(GetParam());
  expect_results(experts::make(local_, hidden, GetParam()).value(), a);
  // Rows of fp8_e4m3 come in the flavour of whoever receives them.
  if (GetParam() == wire::fp8_e4m3fnuz)
    expect_results(experts::make(local_, hidden, wire::fp8_e4m3).value(), a);
}

TEST_P(experts_over, follow_the_index_list_where_rows_stay_in_place) {
  arrival a(GetParam());
  std::vector<std::int32_t> index(200);
  for (std::size_t i = 0; i < index.size(); ++i) {
    index[i] = static_cast<std::int32_t>(i * 77 % 200);
  }
  a.in.index = index.data();
  expect_results(experts::make(local_, hidden, GetParam()).value(), a);
}

TEST_P(experts_over, read_rows_at_any_stride) {
  arrival a(GetParam());
  auto const row = static_cast<std::size_t>(a.in.rows.stride_bytes());
  std::vector<std::byte> spread(200 * (row + 8));
  for (std::size_t i = 0; i < 200; ++i) {
    std::copy_n(a.codes.data() + i * row, row, spread.data() + i * (row + 8));
  }
  a.in.rows.data = spread.data();
  a.in.rows.row_stride_bytes = static_cast<std::int64_t>(row) + 8;
  expect_results(experts::make(local_, hidden, GetParam()).value(), a);
}

TEST(experts, may_be_none) {
  experts const none = experts::make({}, hidden, wire::bf16).value();
  arrival a(wire::bf16);
  a.in.num_local_experts = 0;
  owned_matrix out(0, hidden);
  std::vector<float> scratch(none.scratch_size());
  EXPECT_TRUE(none.apply(a.in, out.view(), scratch));
}

TEST(experts, refuse_what_does_not_fit) {
  owned_matrix const both("both", 2 * width, hidden);
  owned_matrix const down("down", hidden, width);
  std::vector<mlp> const one{mlp::make(both.view(), down.view()).value()};
  EXPECT_EQ(experts::make(one, hidden, wire::opaque).error().code, error_code::unsupported);
  EXPECT_EQ(experts::make(one, hidden + 1, wire::f32).error().code, error_code::invalid_argument);
  experts const e = experts::make(one, hidden, wire::f32).value();
  std::vector<float> scratch(e.scratch_size());
  owned_matrix out(200, hidden);
  arrival a(wire::f32);
  EXPECT_THAT(e.apply(a.in, out.view(), scratch).error().message, testing::HasSubstr("3 experts"));
  a.in.num_local_experts = 1;
  EXPECT_TRUE(e.apply(a.in, out.view(), scratch));
  EXPECT_THAT(e.apply(a.in, {out.values.data(), 20, hidden, hidden}, scratch).error().message,
              testing::HasSubstr("row 21 of 20"));
}

}  // namespace
}  // namespace ferry::deepseek
