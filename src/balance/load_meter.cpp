// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/balance/load_meter.hpp>

#include <ferry/balance/apply_placement.hpp>
#include <ferry/balance/metrics.hpp>

#include "base/fail.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <span>

namespace ferry {
namespace {

/// max/mean of each layer that saw choices.
std::vector<double> ratios(counted_loads const& of) {
  std::vector<double> all;
  for (int l = 0; l < of.num_layers; ++l) {
    auto const first = of.ranks.begin() + std::ptrdiff_t{l} * of.num_ranks;
    auto const sum = std::accumulate(first, first + of.num_ranks, std::int64_t{0});
    if (sum == 0) continue;
    all.push_back(static_cast<double>(*std::max_element(first, first + of.num_ranks)) *
                  of.num_ranks / static_cast<double>(sum));
  }
  return all;
}

}  // namespace

std::int64_t counted_loads::choices() const {
  return std::accumulate(experts.begin(), experts.end(), std::int64_t{0});
}
double counted_loads::max_over_mean() const {
  auto const all = ratios(*this);
  if (all.empty()) return 1;
  return std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
}
double counted_loads::worst() const {
  auto const all = ratios(*this);
  return all.empty() ? 1 : *std::max_element(all.begin(), all.end());
}

result<double> floor_of(std::int64_t tokens, int topk, int num_experts, int num_ranks) {
  // The spread of a rank's share falls with the root of the tokens.
  constexpr std::int64_t most = 4096;
  FERRY_TRY(double const simulated, sampling_floor(std::clamp<std::int64_t>(tokens, 1, most), topk,
                                                   num_experts, num_ranks));
  if (tokens <= most) return simulated;
  return 1 + (simulated - 1) * std::sqrt(static_cast<double>(most) / static_cast<double>(tokens));
}

result<load_meter> load_meter::make(exchange const& of) {
  load_meter made;
  FERRY_TRY(made.before_, of.slot_loads());
  return made;
}

result<counted_loads> load_meter::read(exchange const& of, placement const& where) {
  group const& ranks = of.ranks();
  // Counted, and said, on all ranks before any of them goes on.
  result<std::vector<std::uint64_t>> const now = of.slot_loads();
  result<void> fits = check_fits(of, where);
  if (!now) fits = now.error();
  FERRY_CHECK(ranks.agree(fits));
  std::vector<std::uint64_t> mine(now->size());
  for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = (*now)[i] - before_[i];
  FERRY_TRY(auto const all, ranks.all_gather(std::as_bytes(std::span(mine))));
  before_ = *now;

  counted_loads sum;
  sum.num_layers = where.num_layers;
  sum.num_ranks = ranks.size();
  sum.experts.resize(static_cast<std::size_t>(where.num_layers) *
                     static_cast<std::size_t>(where.num_experts));
  sum.ranks.resize(static_cast<std::size_t>(where.num_layers) *
                   static_cast<std::size_t>(ranks.size()));
  for (int r = 0; r < ranks.size(); ++r) {
    auto const own = static_cast<std::size_t>(where.slots_of(r));
    bytes const& said = all[static_cast<std::size_t>(r)];
    std::vector<std::uint64_t> theirs(static_cast<std::size_t>(where.num_layers) * own);
    if (said.size() != theirs.size() * sizeof theirs[0])
      return fail(error_code::internal, "rank {} counted {} bytes of loads, not {}", r, said.size(),
                  theirs.size() * sizeof theirs[0]);
    std::memcpy(theirs.data(), said.data(), said.size());
    for (int l = 0; l < where.num_layers; ++l)
      for (std::size_t s = 0; s < own; ++s) {
        auto const layer = static_cast<std::size_t>(l);
        auto const n = static_cast<std::int64_t>(theirs[layer * own + s]);
        auto const slot = static_cast<std::size_t>(where.first_slot(r)) + s;
        auto const expert = static_cast<std::size_t>(where.layer(l)[slot]);
        sum.experts[layer * static_cast<std::size_t>(where.num_experts) + expert] += n;
        sum.ranks[layer * static_cast<std::size_t>(ranks.size()) + static_cast<std::size_t>(r)] +=
            n;
      }
  }
  return sum;
}

result<void> offer_samples(exchange const& of, trace_sampler& to) {
  trace_sampler* const one = &to;
  return offer_samples(of, {&one, 1});
}

result<void> offer_samples(exchange const& of, std::span<trace_sampler* const> to) {
  FERRY_TRY(auto const all, of.sampled_choices());
  auto const topk = static_cast<std::size_t>(of.options().topk);
  std::size_t const size = static_cast<std::size_t>(of.options().layers) * topk;
  auto const chosen = [](std::int32_t e) { return e >= 0; };
  auto const tokens = static_cast<std::size_t>(of.options().sampled_tokens);
  std::vector<std::int32_t> token(size);
  auto const offer = [&]() -> result<void> {
    if (std::none_of(token.begin(), token.end(), chosen)) return {};
    for (trace_sampler* sampler : to) FERRY_CHECK(sampler->offer(token));
    std::fill(token.begin(), token.end(), -1);
    return {};
  };
  for (std::size_t i = 0; i < tokens; ++i) {
    std::fill(token.begin(), token.end(), -1);
    // Slots that take turns layer by layer hold parts of one token.
    for (std::size_t from = i * size; from < all.size(); from += tokens * size) {
      std::span<std::int32_t const> const part = std::span(all).subspan(from, size);
      bool apart = true;
      for (std::size_t at = 0; at < size; at += topk)
        apart =
            apart && !(std::any_of(part.begin() + static_cast<std::ptrdiff_t>(at),
                                   part.begin() + static_cast<std::ptrdiff_t>(at + topk), chosen) &&
                       std::any_of(token.begin() + static_cast<std::ptrdiff_t>(at),
                                   token.begin() + static_cast<std::ptrdiff_t>(at + topk), chosen));
      if (!apart) FERRY_CHECK(offer());
      std::transform(part.begin(), part.end(), token.begin(), token.begin(),
                     [](std::int32_t a, std::int32_t b) { return std::max(a, b); });
    }
    FERRY_CHECK(offer());
  }
  return {};
}

result<routing_trace> gather_samples(group const& ranks, routing_trace const& mine) {
  FERRY_TRY(auto const all, ranks.all_gather(std::as_bytes(std::span(mine.experts))));
  routing_trace trace{0, mine.num_layers, mine.topk, {}};
  std::size_t const token = static_cast<std::size_t>(mine.num_layers) *
                            static_cast<std::size_t>(mine.topk) * sizeof(std::int32_t);
  for (std::size_t r = 0; r < all.size(); ++r) {
    bytes const& one = all[r];
    if (one.size() % token != 0)
      return fail(error_code::internal, "rank {} sampled {} bytes of choices, not tokens of {}", r,
                  one.size(), token);
    std::size_t const before = trace.experts.size();
    trace.experts.resize(before + one.size() / sizeof(std::int32_t));
    if (!one.empty()) std::memcpy(trace.experts.data() + before, one.data(), one.size());
    trace.num_tokens += static_cast<std::int64_t>(one.size() / token);
  }
  return trace;
}

}  // namespace ferry
