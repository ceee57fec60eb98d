// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/deepseek/mlp.hpp>

#include "base/fail.hpp"
#include "deepseek/row_loops.hpp"

#include <algorithm>

namespace ferry::deepseek {
result<mlp> mlp::make(matrix<float const> gate_and_up, matrix<float const> down,
                      linear_options const& options) {
  if (gate_and_up.rows != 2 * down.columns || gate_and_up.columns != down.rows) {
    return fail(error_code::invalid_argument, "gate and up of {} by {} do not fit down of {} by {}",
                gate_and_up.rows, gate_and_up.columns, down.rows, down.columns);
  }
  mlp m;
  FERRY_TRY(m.gate_and_up_, linear::pack(gate_and_up, options));
  FERRY_TRY(m.down_, linear::pack(down, options));
  return m;
}

std::size_t mlp::scratch_size() const {
  return static_cast<std::size_t>(linear::most_rows) *
         static_cast<std::size_t>(gate_and_up_.out_features());
}

result<void> mlp::apply(matrix<float const> x, matrix<float> y, std::span<float> scratch) const {
  if (scratch.size() < scratch_size()) {
    return fail(error_code::invalid_argument, "scratch of {} elements, {} are needed",
                scratch.size(), scratch_size());
  }
  std::int64_t const width = down_.in_features();
  for (std::int64_t row = 0; row < x.rows; row += linear::most_rows) {
    std::int64_t const rows = std::min<std::int64_t>(linear::most_rows, x.rows - row);
    FERRY_CHECK(gate_and_up_.apply({x[row], rows, x.columns, x.row_stride},
                                   dense(scratch.data(), rows, 2 * width)));
    loops().gate(
        {dense<float const>(scratch.data(), rows, 2 * width), dense(scratch.data(), rows, width)});
    FERRY_CHECK(down_.apply(dense<float const>(scratch.data(), rows, width),
                            {y[row], rows, y.columns, y.row_stride}));
  }
  return {};
}

}  // namespace ferry::deepseek
