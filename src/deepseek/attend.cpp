// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "deepseek/attend.hpp"

#include "deepseek/vector_loops.hpp"

#include <algorithm>
#include <cmath>

namespace ferry::deepseek {
namespace {

/// Scores become weights that sum to 1.
void softmax(float* scores, std::int64_t count) {
  float largest = scores[0];
  for (std::int64_t p = 1; p < count; ++p) largest = std::max(largest, scores[p]);
  float sum = 0;
  for (std::int64_t p = 0; p < count; ++p) {
    scores[p] = std::exp(scores[p] - largest);
    sum += scores[p];
  }
  float const inverse = 1.0F / sum;
  for (std::int64_t p = 0; p < count; ++p) scores[p] *= inverse;
}

/// to += four weighted rows; the four products are summed first.
void add_rows(float const* weights, float const* rows, int columns, int latent, float* to) {
  float const* r0 = rows;
  float const* r1 = r0 + columns;
  float const* r2 = r1 + columns;
  float const* r3 = r2 + columns;
  for (int i = 0; i < latent; ++i) {
    to[i] += (weights[0] * r0[i] + weights[1] * r1[i]) + (weights[2] * r2[i] + weights[3] * r3[i]);
  }
}

void add_row(float weight, float const* row, int latent, float* to) {
  for (int i = 0; i < latent; ++i) to[i] += weight * row[i];
}

}  // namespace

void attend(attend_input const& in, float* scores, float* out) {
  // Positions outside, heads inside: each cached row is read once for all heads.
  for (std::int64_t p = 0; p < in.count; ++p) {
    float const* row = in.rows + p * in.columns;
    for (int h = 0; h < in.heads; ++h) {
      scores[h * in.count + p] = dot(in.queries + h * in.columns, row, in.columns) * in.scale;
    }
  }
  for (int h = 0; h < in.heads; ++h) softmax(scores + h * in.count, in.count);
  std::fill(out, out + std::int64_t{in.heads} * in.latent, 0.0F);
  std::int64_t p = 0;
  for (; p + 4 <= in.count; p += 4) {
    for (int h = 0; h < in.heads; ++h) {
      add_rows(scores + h * in.count + p, in.rows + p * in.columns, in.columns, in.latent,
               out + h * in.latent);
    }
  }
  for (; p < in.count; ++p) {
    for (int h = 0; h < in.heads; ++h) {
      add_row(scores[h * in.count + p], in.rows + p * in.columns, in.latent, out + h * in.latent);
    }
  }
}

}  // namespace ferry::deepseek
