// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/balance/routing_trace.hpp>

#include "balance/random.hpp"
#include "base/fail.hpp"

#include <algorithm>

namespace ferry {
namespace {

std::int64_t ids_per_token(routing_trace const& trace) {
  return std::int64_t{trace.num_layers} * trace.topk;
}

}  // namespace

result<void> validate(routing_trace const& trace, int num_experts) {
  if (trace.num_tokens < 1 || trace.num_layers < 1 || trace.topk < 1)
    return fail(error_code::invalid_argument,
                "a trace of {} tokens, {} layers and {} choices; at least 1 of each",
                trace.num_tokens, trace.num_layers, trace.topk);
  auto const wanted =
      static_cast<double>(trace.num_tokens) * static_cast<double>(ids_per_token(trace));
  if (static_cast<double>(trace.experts.size()) != wanted)
    return fail(error_code::invalid_argument,
                "{} ids, but {} tokens of {} layers and {} choices make {}", trace.experts.size(),
                trace.num_tokens, trace.num_layers, trace.topk, wanted);
  for (std::size_t i = 0; i < trace.experts.size(); ++i) {
    auto const e = trace.experts[i];
    if (e >= -1 && e < num_experts) continue;
    auto const place = static_cast<std::int64_t>(i) / trace.topk;
    return fail(error_code::invalid_argument,
                "token {} chooses expert {} in layer {}; experts are 0..{}, and -1 is none",
                place / trace.num_layers, e, place % trace.num_layers, num_experts - 1);
  }
  return {};
}

result<expert_loads> loads_of(routing_trace const& trace, int num_experts) {
  if (num_experts < 1)
    return fail(error_code::invalid_argument, "{} experts; at least 1", num_experts);
  FERRY_CHECK(validate(trace, num_experts));
  expert_loads loads{trace.num_layers, num_experts,
                     std::vector<double>(static_cast<std::size_t>(trace.num_layers) *
                                         static_cast<std::size_t>(num_experts))};
  for (std::int64_t t = 0; t < trace.num_tokens; ++t)
    for (int l = 0; l < trace.num_layers; ++l)
      for (auto e : trace.choices(t, l))
        if (e >= 0) loads.layer(l)[static_cast<std::size_t>(e)] += 1;
  FERRY_CHECK(validate(loads));
  return loads;
}

result<trace_sampler> trace_sampler::make(int num_layers, int topk, std::int64_t most_tokens) {
  if (num_layers < 1 || topk < 1 || most_tokens < 1)
    return fail(error_code::invalid_argument,
                "a sample of {} tokens, {} layers and {} choices; at least 1 of each", most_tokens,
                num_layers, topk);
  trace_sampler s;
  s.sample_.num_layers = num_layers;
  s.sample_.topk = topk;
  s.most_tokens_ = most_tokens;
  return s;
}

result<void> trace_sampler::offer(std::span<std::int32_t const> choices) {
  auto const ids = ids_per_token(sample_);
  if (static_cast<std::int64_t>(choices.size()) != ids)
    return fail(error_code::invalid_argument, "{} choices of a token, but {} layers of {} make {}",
                choices.size(), sample_.num_layers, sample_.topk, ids);
  ++offered_;
  if (sample_.num_tokens < most_tokens_) {
    sample_.experts.insert(sample_.experts.end(), choices.begin(), choices.end());
    ++sample_.num_tokens;
    return {};
  }
  auto const at = static_cast<std::int64_t>(balance::next_random(random_) %
                                            static_cast<std::uint64_t>(offered_));
  if (at < most_tokens_)
    std::copy(choices.begin(), choices.end(), sample_.experts.begin() + at * ids);
  return {};
}

}  // namespace ferry
