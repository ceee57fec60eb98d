// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "deepseek/weight_reader.hpp"

#include <ferry/base/block_scale.hpp>
#include <ferry/base/number_formats.hpp>

#include "base/fail.hpp"

#include <fmt/ranges.h>

#include <cstring>

namespace ferry::deepseek {
namespace {

template <class T>
void widen_as(tensor_view const& from, std::int64_t first, std::int64_t count, float* to) {
  std::byte const* at = from.data.data() + first * static_cast<std::int64_t>(sizeof(T));
  for (std::int64_t i = 0; i < count; ++i) {
    T code;
    std::memcpy(&code, at + i * static_cast<std::int64_t>(sizeof code), sizeof code);
    to[i] = to_float(code);
  }
}

}  // namespace

result<void> widen(tensor_view const& from, std::int64_t first, std::int64_t count, float* to) {
  switch (from.type) {
    case storage_type::f32: widen_as<float>(from, first, count, to); return {};
    case storage_type::bf16: widen_as<bf16>(from, first, count, to); return {};
    case storage_type::f16: widen_as<fp16>(from, first, count, to); return {};
    default:
      return fail(error_code::unsupported, "tensor {} is {}, where weights are BF16, F16 or F32",
                  from.name, to_string(from.type));
  }
}

result<tensor_view> weight_reader::tensor(std::string const& name,
                                          std::vector<std::int64_t> const& shape) const {
  FERRY_TRY(tensor_view found, weights_.tensor(name));
  if (found.shape != shape) {
    return fail(error_code::malformed_input, "tensor {} has shape [{}], expected [{}]", name,
                fmt::join(found.shape, ", "), fmt::join(shape, ", "));
  }
  return found;
}

result<std::vector<float>> weight_reader::vector_of(std::string const& name,
                                                    std::int64_t size) const {
  FERRY_TRY(tensor_view const found, tensor(name, {size}));
  std::vector<float> values(static_cast<std::size_t>(size));
  FERRY_CHECK(widen(found, 0, size, values.data()));
  return values;
}

result<void> weight_reader::append_blocks(tensor_view const& codes, std::string const& name,
                                          weight_matrix& to) const {
  if (!config_.is_fp8()) {
    return fail(error_code::malformed_input,
                "tensor {} is {}, but the config names no block size for its scales", name,
                to_string(codes.type));
  }
  std::int64_t const rows = codes.shape[0];
  std::int64_t const columns = codes.shape[1];
  std::int64_t const block_rows = config_.weight_block_size[0];
  std::int64_t const block_columns = config_.weight_block_size[1];
  std::int64_t const blocks = ceil_div(columns, block_columns);
  std::string const scale_name = name + "_scale_inv";
  FERRY_TRY(tensor_view const stored, tensor(scale_name, {ceil_div(rows, block_rows), blocks}));
  std::vector<float> scales(static_cast<std::size_t>(stored.size()));
  FERRY_CHECK(widen(stored, 0, stored.size(), scales.data()));
  float* out = to.values.data() + to.values.size() - static_cast<std::size_t>(rows * columns);
  auto const* in = reinterpret_cast<std::uint8_t const*>(codes.data.data());
  for (std::int64_t row = 0; row < rows; ++row) {
    float const* scale = scales.data() + row / block_rows * blocks;
    for (std::int64_t i = 0; i < columns; ++i) {
      out[row * columns + i] = dequantise(e4m3{in[row * columns + i]}, scale[i / block_columns]);
    }
  }
  return {};
}

result<void> weight_reader::append(std::string const& name, std::int64_t rows,
                                   weight_matrix& to) const {
  std::string const full = name + ".weight";
  FERRY_TRY(tensor_view const found, tensor(full, {rows, to.columns}));
  bool const first = to.values.empty();
  bool const fp8 = found.type == storage_type::e4m3;
  if (!first && fp8 != to.fp8) {
    return fail(error_code::unsupported, "tensor {} is {}, unlike the one that it is joined with",
                full, to_string(found.type));
  }
  to.fp8 = fp8;
  to.rows += rows;
  std::size_t const before = to.values.size();
  to.values.resize(before + static_cast<std::size_t>(found.size()));
  if (fp8) return append_blocks(found, full, to);
  return widen(found, 0, found.size(), to.values.data() + before);
}

result<weight_matrix> weight_reader::matrix_of(std::string const& name, std::int64_t rows,
                                               std::int64_t columns) const {
  return stack({{name, rows}}, columns);
}

result<weight_matrix> weight_reader::stack(std::initializer_list<part> parts,
                                           std::int64_t columns) const {
  weight_matrix m;
  m.columns = columns;
  std::int64_t rows = 0;
  for (part const& p : parts) rows += p.rows;
  m.values.reserve(static_cast<std::size_t>(rows * columns));
  for (part const& p : parts) FERRY_CHECK(append(p.name, p.rows, m));
  return m;
}

}  // namespace ferry::deepseek
