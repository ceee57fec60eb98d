// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The inner loops of attention.
#pragma once

#include <cstdint>

namespace ferry::deepseek {

/// One token's queries over its sequence's cache.
struct attend_input {
  float const* queries = nullptr;  ///< [heads, columns]: absorbed, then rotated
  float const* rows = nullptr;     ///< [count, columns]: latent, then rotated key
  std::int64_t count = 0;          ///< positions 0 .. the token's own
  int heads = 0;
  int columns = 0;
  int latent = 0;  ///< leading columns of a row that are its value
  float scale = 1;
};

/// out[h] = sum over p of softmax(scale * queries[h] . rows[p]) * rows[p][0, latent)
/// Shapes  scores [heads, count] is scratch, out [heads, latent]
/// Order   every sum runs in an order that `count` alone decides
void attend(attend_input const& in, float* scores, float* out);

}  // namespace ferry::deepseek
