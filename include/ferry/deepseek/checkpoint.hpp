// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The weights of a model directory, in one safetensors file or many.
#pragma once

#include <ferry/base/result.hpp>
#include <ferry/files/safetensors.hpp>

#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

namespace ferry::deepseek {

/// Named tensors of a directory with model.safetensors, or with model.safetensors.index.json and
/// the files that it names. Opening reads headers alone; a rank that asks for its own experts only
/// has only these read from disk and resident.
/// Lifetime copies are the same checkpoint; tensors borrow from it
class checkpoint {
 public:
  /// The index is followed where there is one.
  /// Errors   io a file is missing or unreadable; malformed_input naming file, tensor and reason:
  ///          a broken header, an index that is no index, a file name that leaves the directory,
  ///          a tensor that is not in the file where the index puts it
  static result<checkpoint> open(std::filesystem::path const& directory);

  bool has(std::string_view name) const;
  /// Errors   malformed_input no such tensor in the checkpoint; io it cannot be mapped. Safe from
  ///          several threads
  result<tensor_view> tensor(std::string_view name) const;
  /// All names, sorted.
  std::vector<std::string_view> names() const;
  std::filesystem::path const& directory() const;

 private:
  struct state;
  explicit checkpoint(std::shared_ptr<state const> s);
  std::shared_ptr<state const> state_;
};

}  // namespace ferry::deepseek
