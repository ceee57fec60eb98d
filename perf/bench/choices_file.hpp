// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Recorded choices of experts: an array of integers [tokens, layers, topk] in a file.
#pragma once

#include <ferry/result.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace ferry::bench {

struct choices_file {
  std::string name;
  std::int64_t tokens = 0;
  std::int64_t layers = 0;
  std::int64_t topk = 0;
  std::vector<std::int64_t> ids;  ///< [tokens, layers, topk]

  std::int64_t at(std::int64_t token, std::int64_t layer, std::int64_t choice) const {
    return ids[static_cast<std::size_t>((token * layers + layer) * topk + choice)];
  }
};

/// Reads a .npy file (C order, little-endian integers), or a .safetensors file that holds one
/// tensor, or one named "choices". Integers of 1, 2, 4 or 8 bytes, with a sign or without.
/// Errors   io it cannot be read; malformed_input it is no such file, or ends early;
///          invalid_argument its name has another ending, or its array is not one of integers
///          [tokens, layers, topk]
result<choices_file> read_choices(std::string const& path);

}  // namespace ferry::bench
