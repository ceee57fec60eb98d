// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Matrix products whose rows do not know each other.
#pragma once

#include <ferry/base/matrix.hpp>
#include <ferry/base/result.hpp>

#include <memory>

namespace ferry::deepseek {

class weight_pool;

/// How the rows of a product are cut into calls of the product library.
enum class row_calls : std::uint8_t {
  probed,   ///< calls of 1 to 64 rows where a probe finds that a row's result is the same in all of
            ///< them, else calls of 16
  sixteen,  ///< always calls of exactly 16 rows, the last one filled up with zero rows
};

struct linear_options {
  /// Type of the packed weights and of the product's inputs; sums are always f32. bf16 rounds each
  /// input element to nearest; where this machine has no such product, the rounded values are
  /// multiplied in f32.
  dtype compute = dtype::f32;
  /// Rounds the input to fp8 E4M3 with one scale per row and 128 columns first, as engines do
  /// whose products take fp8 on both sides.
  bool quantise_input = false;
  row_calls calls = row_calls::probed;
  /// Where the packed weights are noted, or null: those that a model shares with other ranks.
  weight_pool* pool = nullptr;
};

/// y = x W^T with W packed once. A row of y is a function of its row of x alone: the other rows of
/// the call, their number and its place among them change no bit.
/// Lifetime copies share the packed weights. Any number of threads may call `apply` at once; each
///          computes alone, on its own thread
class linear {
 public:
  /// The largest number of rows that the product library sees in one call.
  static constexpr int most_rows = 64;

  linear() = default;

  /// Packs `weights`, which are not needed afterwards.
  /// Shapes   weights [out, in]
  /// Errors   invalid_argument an empty matrix, or a compute type that is neither f32 nor bf16;
  ///          out_of_memory; internal the product library failed, with its message
  static result<linear> pack(matrix<float const> weights, linear_options const& options = {});

  /// Shapes   x [n, in], y [n, out], any row strides; n may be 0. They must not overlap
  /// Errors   invalid_argument shapes that do not fit; internal the product library failed
  result<void> apply(matrix<float const> x, matrix<float> y) const;

  /// The packed weights, as numbers of the compute type: packed again they are the same.
  /// Shapes   to [out, in], dense
  /// Errors   invalid_argument shapes; out_of_memory; internal
  result<void> unpack(matrix<float> to) const;
  /// What it was packed with.
  linear_options options() const;

  int in_features() const;
  int out_features() const;
  /// Whether calls are of 16 rows only, by choice or because the probe asked for it.
  bool uses_sixteen_rows() const;

 private:
  struct packed;
  explicit linear(std::shared_ptr<packed const> weights);
  std::shared_ptr<packed const> packed_;
};

}  // namespace ferry::deepseek
