// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// A group of one rank, and valid arguments for a small exchange.
#pragma once

#include <ferry/exchange.hpp>

#include "exchange/rank_run.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <optional>
#include <vector>

namespace ferry::oracle {

inline constexpr std::chrono::milliseconds long_enough{20000};

// A group of one rank meets nobody: every call can be tried from one thread.
struct lone_rank {
  group ranks;
  std::optional<exchange> ep;
  queue q;

  explicit lone_rank(exchange_options const& o)
      : ranks(join(ferry::threads(1).rank(0)).value()), q(queue::cpu(o.blocks).value()) {
    ep.emplace(make_exchange(ranks, o).value());
  }
  microbatch& slot(int i = 0) { return ep->microbatch(i); }
};

inline exchange_options small() {
  return {.num_experts = 3,
          .topk = 2,
          .hidden = 5,
          .max_tokens = 4,
          .tokens = dtype::f32,
          .wire = wire::f32,
          .expert_rows = dtype::f32,
          .combine_wire = wire::f32,
          .output = dtype::f32};
}

// Valid arguments for small(): three tokens.
struct small_step {
  std::vector<float> x = std::vector<float>(64, 1.0f);
  std::vector<std::int32_t> ids = {0, 1, 2, -1, 1, 1, 0, 0, 0, 0, 0, 0};
  std::vector<float> w = std::vector<float>(16, 0.5f);
  std::vector<float> made = std::vector<float>(64, 2.0f);
  std::vector<float> y = std::vector<float>(64, -1.0f);

  dispatch_input input(std::int64_t tokens = 3) {
    return {.tokens = rows_of(x.data(), tokens, 5),
            .choices = dense(ids.data(), tokens, 2),
            .weights = dense(w.data(), tokens, 2)};
  }
  tensor results(std::int64_t rows = 5) { return rows_of(made.data(), rows, 5); }
  tensor output(std::int64_t rows = 3) { return rows_of(y.data(), rows, 5); }
};

}  // namespace ferry::oracle
