// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Which experts tokens chose together.
#pragma once

#include <ferry/balance/expert_loads.hpp>
#include <ferry/base/result.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ferry {

/// The choices of some tokens in every layer. Which experts are chosen together decides how many
/// ranks a token visits, and no table of loads tells.
struct routing_trace {
  std::int64_t num_tokens = 0;
  int num_layers = 0;
  int topk = 0;
  std::vector<std::int32_t> experts;  ///< [tokens, layers, topk]; -1 is no expert

  std::span<std::int32_t const> choices(std::int64_t token, int layer) const {
    auto const k = static_cast<std::size_t>(topk);
    return {
        experts.data() + (static_cast<std::size_t>(token) * static_cast<std::size_t>(num_layers) +
                          static_cast<std::size_t>(layer)) *
                             k,
        k};
  }
};

/// Errors   invalid_argument no tokens, layers or choices, another number of ids than their
/// product, or
///          an id outside -1..num_experts-1 (with its token and layer)
result<void> validate(routing_trace const& trace, int num_experts);

/// How often each expert was chosen.
/// Errors   as `validate`; invalid_argument also where every choice is -1
result<expert_loads> loads_of(routing_trace const& trace, int num_experts);

/// Keeps an even sample of all tokens that it is offered, of bounded size (Vitter's algorithm R).
/// The same tokens in the same order always leave the same sample.
class trace_sampler {
 public:
  /// Errors   invalid_argument a number below 1
  static result<trace_sampler> make(int num_layers, int topk, std::int64_t most_tokens);
  /// Shapes   choices [layers, topk] of one token
  /// Errors   invalid_argument another size
  result<void> offer(std::span<std::int32_t const> choices);
  std::int64_t offered() const { return offered_; }
  routing_trace const& sample() const { return sample_; }

 private:
  trace_sampler() = default;
  routing_trace sample_;
  std::int64_t most_tokens_ = 0;
  std::int64_t offered_ = 0;
  std::uint64_t random_ = 0;
};

}  // namespace ferry
