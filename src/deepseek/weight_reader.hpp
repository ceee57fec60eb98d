// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Weights from a checkpoint, checked and widened to f32.
#pragma once

#include <ferry/base/matrix.hpp>
#include <ferry/base/result.hpp>
#include <ferry/deepseek/checkpoint.hpp>
#include <ferry/deepseek/model_config.hpp>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace ferry::deepseek {

/// A matrix [out, in] in f32, exactly what the checkpoint's type means.
struct weight_matrix {
  std::vector<float> values;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  bool fp8 = false;  ///< stored as fp8 with block scales

  matrix<float const> view() const { return dense<float const>(values.data(), rows, columns); }
};

/// Reads tensors by name.
/// Errors   of all members: malformed_input a tensor is missing, or its type or shape is not the
///          one expected, naming both; unsupported a storage type that weights cannot have; io
class weight_reader {
 public:
  weight_reader(checkpoint const& weights, model_config const& config)
      : weights_(weights), config_(config) {}

  /// One matrix "<name>.weight", with "<name>.weight_scale_inv" where it is fp8.
  result<weight_matrix> matrix_of(std::string const& name, std::int64_t rows,
                                  std::int64_t columns) const;

  struct part {
    std::string name;
    std::int64_t rows;
  };
  /// Several matrices on top of each other.
  /// Errors   also unsupported some are fp8 and some are not
  result<weight_matrix> stack(std::initializer_list<part> parts, std::int64_t columns) const;

  /// A vector, by its full name.
  result<std::vector<float>> vector_of(std::string const& name, std::int64_t size) const;

  /// A tensor whose shape is checked and whose values are left where they are.
  result<tensor_view> tensor(std::string const& name, std::vector<std::int64_t> const& shape) const;

 private:
  result<void> append(std::string const& name, std::int64_t rows, weight_matrix& to) const;
  result<void> append_blocks(tensor_view const& codes, std::string const& name,
                             weight_matrix& to) const;

  checkpoint const& weights_;
  model_config const& config_;
};

/// Widens `count` elements of a bf16, f16 or f32 tensor, from element `first`.
/// Errors   unsupported another type, naming the tensor
result<void> widen(tensor_view const& from, std::int64_t first, std::int64_t count, float* to);

}  // namespace ferry::deepseek
