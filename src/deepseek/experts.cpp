// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/deepseek/experts.hpp>

#include "base/fail.hpp"
#include "deepseek/row_loops.hpp"

#include <ferry/kernels/shape.hpp>

#include <algorithm>

namespace ferry::deepseek {
void decode_row(ferry::wire w, std::byte const* row, std::byte const* scales, int hidden,
                float* to) {
  loops().decode(
      {.format = w, .rows = row, .scales = scales, .to = dense(to, 1, std::int64_t{hidden})});
}

result<experts> experts::make(std::vector<mlp> local, int hidden, ferry::wire wire) {
  if (wire == wire::opaque) {
    return fail(error_code::unsupported, "experts cannot read opaque rows");
  }
  for (mlp const& expert : local) {
    if (expert.hidden() != hidden) {
      return fail(error_code::invalid_argument, "an expert of hidden size {} among those of {}",
                  expert.hidden(), hidden);
    }
  }
  experts e;
  e.local_ = std::move(local);
  e.hidden_ = hidden;
  e.wire_ = wire;
  return e;
}

std::size_t experts::scratch_size() const {
  std::size_t size = 0;
  for (mlp const& expert : local_) size = std::max(size, expert.scratch_size());
  return size + static_cast<std::size_t>(linear::most_rows) * static_cast<std::size_t>(hidden_);
}

result<void> experts::apply(received const& in, matrix<float> out, std::span<float> scratch) const {
  if (in.num_local_experts != size() || in.rows.columns != hidden_ || out.columns != hidden_) {
    return fail(error_code::invalid_argument,
                "{} experts of hidden size {} got rows for {} experts of {}, and {} out", size(),
                hidden_, in.num_local_experts, in.rows.columns, out.columns);
  }
  if (scratch.size() < scratch_size()) {
    return fail(error_code::invalid_argument, "scratch of {} elements, {} are needed",
                scratch.size(), scratch_size());
  }
  float* decoded = scratch.data();
  auto const inner = scratch.subspan(static_cast<std::size_t>(linear::most_rows) *
                                     static_cast<std::size_t>(hidden_));
  std::int64_t const stride = in.rows.stride_bytes();
  bool const fnuz = in.rows.type == dtype::e4m3fnuz;
  wire const format = wire_ == wire::fp8_e4m3 ? e4m3_wire(fnuz) : wire_;
  bool const as_they_are =
      wire_ == wire::f32 && in.index == nullptr && stride % std::int64_t{sizeof(float)} == 0;
  for (int e = 0; e < size(); ++e) {
    std::int64_t const end = std::int64_t{in.starts[e]} + in.counts[e];
    if (in.counts[e] > 0 && end > out.rows) {
      return fail(error_code::invalid_argument, "expert {} writes up to row {} of {}",
                  in.first_expert + e, end, out.rows);
    }
    for (std::int64_t begin = in.starts[e]; begin < end; begin += linear::most_rows) {
      std::int64_t const rows = std::min<std::int64_t>(linear::most_rows, end - begin);
      matrix<float const> x = dense<float const>(decoded, rows, hidden_);
      if (as_they_are) {
        x = {reinterpret_cast<float const*>(in.rows[begin]), rows, hidden_,
             stride / std::int64_t{sizeof(float)}};
      } else {
        // Rows by index lie anywhere, others one after the other.
        std::int64_t const row = in.index != nullptr ? 0 : begin;
        loops().decode({.format = format,
                        .fnuz = fnuz,
                        .rows = in.rows[row],
                        .row_stride = stride,
                        .scales = in.scales.data != nullptr ? in.scales[row] : nullptr,
                        .scale_stride = in.scales.row_stride,
                        .index = in.index != nullptr ? in.index + begin : nullptr,
                        .to = dense(decoded, rows, std::int64_t{hidden_})});
      }
      FERRY_CHECK(local_[static_cast<std::size_t>(e)].apply(
          x, {out[begin], rows, hidden_, out.row_stride}, inner));
    }
  }
  return {};
}

}  // namespace ferry::deepseek
