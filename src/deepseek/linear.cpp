// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/base/number_formats.hpp>
#include <ferry/deepseek/linear.hpp>

#include "base/fail.hpp"
#include "deepseek/product.hpp"
#include "deepseek/row_loops.hpp"
#include "deepseek/weight_pool.hpp"

#include <algorithm>
#include <limits>
#include <new>
#include <vector>

namespace ferry::deepseek {

struct linear::packed {
  product_shape const* shape = nullptr;
  packed_weights weights;
  bool round_input = false;     // to bf16, for a product in f32
  bool quantise_input = false;  // to fp8 and back
  bool sixteen = false;
  linear_options given;

  bool changes_input() const { return shape->type == dtype::bf16 || round_input || quantise_input; }
  void const* stage(matrix<float const> x, int rows) const;
};

namespace {

static_assert(linear::most_rows == call_rows::most);

/// What a thread needs to bring rows into the form that a call takes. Grows to the largest call
/// and stays.
struct staging {
  std::vector<float> values;
  std::vector<bf16> codes;
  std::vector<float> results;
};

staging& staging_of_this_thread() {
  thread_local staging s;
  return s;
}

template <class T>
T* at_least(std::vector<T>& v, std::size_t size) {
  if (v.size() < size) v.resize(size);
  return v.data();
}

std::vector<bf16> rounded(matrix<float const> m) {
  std::vector<bf16> codes(static_cast<std::size_t>(m.rows * m.columns));
  for (std::int64_t row = 0; row < m.rows; ++row) {
    loops().narrow(
        {dense(m[row], 1, m.columns), dense(codes.data() + row * m.columns, 1, m.columns)});
  }
  return codes;
}

/// Dense f32 rows, rounded to bf16 where asked.
std::vector<float> widened(matrix<float const> m, bool round) {
  std::vector<float> values(static_cast<std::size_t>(m.rows * m.columns));
  for (std::int64_t row = 0; row < m.rows; ++row) {
    float* to = values.data() + row * m.columns;
    for (std::int64_t i = 0; i < m.columns; ++i) {
      to[i] = round ? to_float(from_float<bf16>(m[row][i])) : m[row][i];
    }
  }
  return values;
}

}  // namespace

linear::linear(std::shared_ptr<packed const> weights) : packed_(std::move(weights)) {}

int linear::in_features() const {
  return packed_ ? packed_->shape->in : 0;
}
int linear::out_features() const {
  return packed_ ? packed_->shape->out : 0;
}
bool linear::uses_sixteen_rows() const {
  return packed_ && packed_->sixteen;
}

result<linear> linear::pack(matrix<float const> weights, linear_options const& options) {
  constexpr std::int64_t limit = std::numeric_limits<int>::max();
  if (weights.data == nullptr || weights.rows < 1 || weights.columns < 1 || weights.rows > limit ||
      weights.columns > limit) {
    return fail(error_code::invalid_argument, "weights of {} by {} must be 1 to {} each",
                weights.rows, weights.columns, limit);
  }
  if (options.compute != dtype::f32 && options.compute != dtype::bf16) {
    return fail(error_code::invalid_argument, "products compute in f32 or bf16, not in {}",
                to_string(options.compute));
  }
  int const in = static_cast<int>(weights.columns);
  int const out = static_cast<int>(weights.rows);
  auto p = std::make_shared<packed>();
  p->quantise_input = options.quantise_input;
  p->given = options;
  auto shape = find_product(in, out, options.compute);
  if (!shape && options.compute == dtype::bf16 && shape.error().code == error_code::unsupported) {
    p->round_input = true;
    shape = find_product(in, out, dtype::f32);
  }
  FERRY_TRY(p->shape, std::move(shape));
  try {
    if (p->shape->type == dtype::bf16) {
      FERRY_TRY(p->weights.memory, p->shape->pack(rounded(weights).data()));
    } else if (weights.row_stride == weights.columns && !p->round_input) {
      FERRY_TRY(p->weights.memory, p->shape->pack(weights.data));
    } else {
      FERRY_TRY(p->weights.memory, p->shape->pack(widened(weights, p->round_input).data()));
    }
    p->sixteen =
        options.calls == row_calls::sixteen || !p->shape->rows_are_independent(p->weights.memory);
    if (options.pool) options.pool->add(std::shared_ptr<packed_weights>(p, &p->weights));
  } catch (std::bad_alloc const&) {
    return fail(error_code::out_of_memory, "no memory to pack weights of {} by {}", out, in);
  }
  return linear(std::move(p));
}

result<void> linear::unpack(matrix<float> to) const {
  if (!packed_ || to.rows != out_features() || to.columns != in_features() ||
      to.row_stride != to.columns) {
    return fail(error_code::invalid_argument, "weights of {} by {} unpacked to {} by {}",
                out_features(), in_features(), to.rows, to.columns);
  }
  if (packed_->shape->type == dtype::f32)
    return packed_->shape->unpack(packed_->weights.memory, to.data);
  auto const size = static_cast<std::size_t>(to.rows * to.columns);
  try {
    std::vector<bf16> codes(size);
    FERRY_CHECK(packed_->shape->unpack(packed_->weights.memory, codes.data()));
    for (std::size_t i = 0; i < size; ++i) to.data[i] = to_float(codes[i]);
    return {};
  } catch (std::bad_alloc const&) {
    return fail(error_code::out_of_memory, "no memory to unpack weights of {} by {}", to.rows,
                to.columns);
  }
}

linear_options linear::options() const {
  return packed_ ? packed_->given : linear_options{};
}

/// `rows` rows in the form of the product: those of x, then zeros.
void const* linear::packed::stage(matrix<float const> x, int rows) const {
  std::int64_t const in = shape->in;
  staging& own = staging_of_this_thread();
  auto const size = static_cast<std::size_t>(rows * in);
  auto const filled = static_cast<std::size_t>(x.rows * in);
  float* values = at_least(own.values, size);
  bf16* codes = shape->type == dtype::bf16 ? at_least(own.codes, size) : nullptr;
  for (std::int64_t row = 0; row < x.rows; ++row) {
    float* to = values + row * in;
    float const* from = x[row];
    if (quantise_input) {
      loops().quantise({dense(from, 1, in), dense(to, 1, in)});
      from = to;
    }
    if (codes != nullptr) {
      loops().narrow({dense(from, 1, in), dense(codes + row * in, 1, in)});
    } else if (round_input) {
      for (std::int64_t i = 0; i < in; ++i) to[i] = to_float(from_float<bf16>(from[i]));
    } else if (from != to) {
      std::copy_n(from, in, to);
    }
  }
  if (codes != nullptr) {
    std::fill(codes + filled, codes + size, bf16{0});
    return codes;
  }
  std::fill(values + filled, values + size, 0.0F);
  return values;
}

result<void> linear::apply(matrix<float const> x, matrix<float> y) const {
  if (!packed_) return fail(error_code::invalid_argument, "a product without weights");
  packed const& p = *packed_;
  std::int64_t const in = p.shape->in;
  std::int64_t const out = p.shape->out;
  if (x.columns != in || y.columns != out || x.rows != y.rows) {
    return fail(error_code::invalid_argument,
                "a product of {} by {} features got {} by {} in and {} by {} out", in, out, x.rows,
                x.columns, y.rows, y.columns);
  }
  for (std::int64_t row = 0; row < x.rows;) {
    std::int64_t const left = x.rows - row;
    int const rows = p.sixteen ? call_rows::fixed : call_rows::at_most(left);
    std::int64_t const used = std::min<std::int64_t>(rows, left);
    bool const full = used == rows;
    void const* from = x[row];
    if (!full || p.changes_input() || x.row_stride != in) {
      from = p.stage({x[row], used, in, x.row_stride}, rows);
    }
    if (full && y.row_stride == out) {
      FERRY_CHECK(p.shape->multiply(p.weights.memory, from, y[row], rows));
    } else {
      float* to = at_least(staging_of_this_thread().results, static_cast<std::size_t>(rows * out));
      FERRY_CHECK(p.shape->multiply(p.weights.memory, from, to, rows));
      for (std::int64_t i = 0; i < used; ++i) std::copy_n(to + i * out, out, y[row + i]);
    }
    row += used;
  }
  return {};
}

}  // namespace ferry::deepseek
