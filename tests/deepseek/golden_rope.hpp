// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The rotary positions of tests/data/rope.
#pragma once

#include <ferry/deepseek/rope.hpp>

#include "data/golden_file.hpp"

#include <cstdint>
#include <string>

namespace ferry::test {

struct golden_rope {
  explicit golden_rope(std::string const& name) : file("rope/" + name + ".safetensors") {
    auto const number = [&](char const* key) { return std::stod(file.metadata(key)); };
    options.dimensions = static_cast<int>(number("qk_rope_head_dim"));
    options.theta = number("rope_theta");
    deepseek::yarn stretch;
    stretch.factor = number("rope_factor");
    stretch.original_max_position_embeddings =
        static_cast<std::int64_t>(number("original_seq_len"));
    stretch.beta_fast = number("beta_fast");
    stretch.beta_slow = number("beta_slow");
    stretch.mscale = stretch.mscale_all_dim = number("mscale");
    options.stretch = stretch;
    head = options.dimensions + static_cast<int>(number("qk_nope_head_dim"));
    positions = static_cast<std::int64_t>(number("max_seq_len"));
  }
  testing::golden_file file;
  deepseek::rope_options options;
  int head = 0;
  std::int64_t positions = 0;
};

}  // namespace ferry::test
