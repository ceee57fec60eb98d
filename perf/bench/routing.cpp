// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "routing.hpp"

#include <fmt/format.h>
#include <ferry/kernels/shape.hpp>

#include <algorithm>
#include <numeric>
#include <random>

namespace ferry::bench {
namespace {

using generator = std::mt19937_64;

double uniform(generator& from) {
  return (static_cast<double>(from() >> 11) + 0.5) * 0x1p-53;
}

/// Moves `count` different elements of `all`, each drawn from those left, to its front.
void draw(std::vector<std::int32_t>& all, int count, generator& from) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i)
    std::swap(all[i], all[i + from() % (all.size() - i)]);
}

constexpr int num_groups = 8, groups_of_a_token = 4;

result<void> check(bench_case const& c) {
  if (c.routing == routing_kind::group_limited) {
    if (c.experts % num_groups != 0)
      return error{error_code::invalid_argument,
                   fmt::format("routing group_limited with {} experts: they must be a multiple of "
                               "its {} groups",
                               c.experts, num_groups)};
    int const among = c.experts / num_groups * groups_of_a_token;
    if (c.topk > among)
      return error{
          error_code::invalid_argument,
          fmt::format("routing group_limited with topk {}: {} of {} groups hold {} experts", c.topk,
                      groups_of_a_token, num_groups, among)};
  } else if (c.routing != routing_kind::all_to_one && c.topk > c.experts) {
    return error{
        error_code::invalid_argument,
        fmt::format("topk {} with {} experts: a token chooses different ones", c.topk, c.experts)};
  }
  return {};
}

/// Writes one token's topk choices.
class chooser {
 public:
  chooser(bench_case const& c, generator& from) : case_(c), from_(from) {
    int const here =
        c.routing == routing_kind::all_to_one ? first_expert_of(1, c.ranks, c.experts) : c.experts;
    all_.resize(static_cast<std::size_t>(here));
    std::iota(all_.begin(), all_.end(), 0);
    groups_.resize(num_groups);
    std::iota(groups_.begin(), groups_.end(), 0);
    popular_ = all_;
    draw(popular_, here, from_);
  }

  void choose(std::int32_t* to) {
    switch (case_.routing) {
      case routing_kind::power_law: return choose_popular(to);
      case routing_kind::group_limited: return choose_in_groups(to);
      default: break;
    }
    int const some = std::min(case_.topk, static_cast<int>(all_.size()));
    draw(all_, some, from_);
    for (int k = 0; k < case_.topk; ++k) to[k] = k < some ? all_[static_cast<std::size_t>(k)] : -1;
  }

 private:
  // The topk smallest of exponential variates with rates 1/i are a draw in proportion to 1/i
  // without repetition.
  void choose_popular(std::int32_t* to) {
    keys_.clear();
    for (std::size_t i = 0; i < popular_.size(); ++i)
      keys_.emplace_back(-std::log(uniform(from_)) * static_cast<double>(i + 1), popular_[i]);
    std::partial_sort(keys_.begin(), keys_.begin() + case_.topk, keys_.end());
    for (int k = 0; k < case_.topk; ++k) to[k] = keys_[static_cast<std::size_t>(k)].second;
  }

  void choose_in_groups(std::int32_t* to) {
    draw(groups_, groups_of_a_token, from_);
    std::int32_t const each = case_.experts / num_groups;
    std::vector<std::int32_t> among;
    for (std::size_t g = 0; g < groups_of_a_token; ++g)
      for (std::int32_t e = 0; e < each; ++e) among.push_back(groups_[g] * each + e);
    draw(among, case_.topk, from_);
    std::copy_n(among.begin(), case_.topk, to);
  }

  bench_case const& case_;
  generator& from_;
  std::vector<std::int32_t> all_, groups_, popular_;
  std::vector<std::pair<double, std::int32_t>> keys_;
};

}  // namespace

result<std::vector<std::int32_t>> make_choices(bench_case const& c, std::uint64_t seed) {
  FERRY_CHECK(check(c));
  auto const tokens = static_cast<std::size_t>(c.ranks) * static_cast<std::size_t>(c.tokens);
  auto const topk = static_cast<std::size_t>(c.topk);
  std::vector<std::int32_t> ids(tokens * topk);
  generator from(seed);
  chooser next(c, from);
  for (std::size_t t = 0; t < tokens; ++t) next.choose(ids.data() + t * topk);
  return ids;
}

result<std::vector<std::int32_t>> take_choices(bench_case const& c, recorded_choices const& from) {
  routing_trace const& trace = from.trace;
  auto const wrong = [&](std::string what) {
    return error{error_code::invalid_argument, from.file + ": " + std::move(what)};
  };
  if (c.layer >= trace.num_layers)
    return wrong(fmt::format("layer {} of {}", c.layer, trace.num_layers));
  if (c.topk != trace.topk)
    return wrong(fmt::format("has {} choices a token, but topk is {}", trace.topk, c.topk));
  std::int64_t const tokens = std::int64_t{c.ranks} * c.tokens;
  if (tokens > trace.num_tokens)
    return wrong(fmt::format("has {} tokens, but {} ranks of {} need {}", trace.num_tokens, c.ranks,
                             c.tokens, tokens));
  std::vector<std::int32_t> ids;
  for (std::int64_t t = 0; t < tokens; ++t)
    for (std::int32_t id : trace.choices(t, c.layer)) {
      if (id >= c.experts)
        return wrong(fmt::format("token {} of layer {} chooses {}, but there are {} experts", t,
                                 c.layer, id, c.experts));
      ids.push_back(id);
    }
  return ids;
}

routes routes_of(bench_case const& c, std::vector<std::int32_t> ids) {
  routes r{c.ranks, c.tokens, c.topk, c.experts, std::move(ids), {}};
  for (int e = 0; e < c.experts; ++e) r.owners.push_back(owner_of(e, c.ranks, c.experts));
  return r;
}

std::int64_t most_rows_of_an_expert(routes const& r) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(r.experts));
  for (std::int32_t id : r.ids)
    if (id >= 0) ++rows[static_cast<std::size_t>(id)];
  return std::ranges::max(rows);
}

places places_of(routes const& r, int rank, std::int64_t per_expert) {
  int const first = first_expert_of(rank, r.ranks, r.experts);
  auto const local =
      static_cast<std::size_t>(first_expert_of(rank + 1, r.ranks, r.experts) - first);
  std::vector<std::int64_t> rows(local);
  for (std::int32_t id : r.ids)
    if (r.owner(id) == rank) ++rows[static_cast<std::size_t>(id - first)];
  std::vector<std::int64_t> next(local);
  places p;
  for (std::size_t e = 0; e < local; ++e) {
    next[e] = per_expert ? static_cast<std::int64_t>(e) * per_expert
              : e        ? next[e - 1] + rows[e - 1]
                         : 0;
    if (rows[e]) p.end = next[e] + rows[e];
    p.most = std::max(p.most, rows[e]);
  }
  p.position.resize(r.ids.size(), -1);
  for (std::size_t i = 0; i < r.ids.size(); ++i)
    if (r.owner(r.ids[i]) == rank)
      p.position[i] = static_cast<std::int32_t>(next[static_cast<std::size_t>(r.ids[i] - first)]++);
  return p;
}

}  // namespace ferry::bench
