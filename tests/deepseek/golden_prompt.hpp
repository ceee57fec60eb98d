// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// A golden prompt of a tiny model, and what a test collects to compare with it.
#pragma once

#include <ferry/deepseek/model.hpp>

#include "data/golden_file.hpp"

#include <map>
#include <numeric>
#include <string>
#include <vector>

namespace ferry::test {

inline std::string model_directory(std::string const& name) {
  return std::string(FERRY_TINY_MODELS) + "/" + name;
}

/// Keeps everything that a model shows, over all its forwards.
struct recorder : deepseek::model_observer {
  void hidden(int layer, matrix<float const> m) override { last(hidden_last[layer], m); }
  void attended(int layer, matrix<float const> m) override { last(attended_last[layer], m); }
  void normalised(matrix<float const> m) override { last(normal_last, m); }
  void routed(int layer, matrix<std::int32_t const> c, matrix<float const> w) override {
    auto& to = choices[layer];
    to.insert(to.end(), c.data, c.data + c.rows * c.columns);
    weights[layer].insert(weights[layer].end(), w.data, w.data + w.rows * w.columns);
  }
  static void last(std::vector<float>& to, matrix<float const> m) {
    if (m.rows > 0) to.assign(m[m.rows - 1], m[m.rows - 1] + m.columns);
  }
  std::map<int, std::vector<float>> hidden_last, attended_last;
  std::vector<float> normal_last;
  std::map<int, std::vector<std::int32_t>> choices;
  std::map<int, std::vector<float>> weights;
};

/// Feeds tokens to one cache slot and keeps the logits.
struct sequence {
  int slot = 0;
  int position = 0;
  std::vector<float> logits = {};

  void feed(deepseek::model& m, queue& q, std::vector<std::int32_t> const& ids) {
    auto const n = static_cast<std::int64_t>(ids.size());
    std::vector<std::int32_t> const slots(ids.size(), slot);
    std::vector<std::int32_t> positions(ids.size());
    std::iota(positions.begin(), positions.end(), position);
    std::size_t const before = logits.size();
    std::int64_t const vocab = m.config().vocab_size;
    logits.resize(before + static_cast<std::size_t>(n * vocab));
    m.forward(q, {ids, slots, positions}, dense(logits.data() + before, n, vocab)).value();
    position += static_cast<int>(n);
  }
};

/// Takes part without tokens of its own.
inline void attend_idly(deepseek::model& m, queue& q) {
  m.forward(q, {}, {}).value();
}

}  // namespace ferry::test
