// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "window_sizes.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>

namespace ferry::bench {

std::uint64_t deepep_low_latency_bytes(std::uint64_t experts, std::uint64_t tokens,
                                       std::uint64_t hidden) {
  std::uint64_t const scales = 4 * hidden / 128;
  std::uint64_t const dispatched = 16 + std::max(2 * hidden, hidden + scales);
  std::uint64_t const combined = 2 * hidden + scales;
  std::uint64_t const counters = round_up(4 * experts, std::uint64_t{128});
  std::uint64_t const sending = std::max(tokens * dispatched, experts * tokens * combined);
  std::uint64_t const receiving = experts * tokens * std::max(dispatched, combined);
  return 2 * (counters + sending + receiving);
}

result<void> print_sizes(settings const& s, int ranks) {
  // What is done with a window changes nothing of it.
  settings only = s;
  only.ops = {operation::step};
  only.layouts = {s.layouts.front()};
  only.results = {result_rows::experts};
  only.routings = {routing_kind::uniform};
  only.layers = {0};
  FERRY_TRY(auto const cases, cases_of(only, ranks));
  FERRY_TRY(json_lines out, json_lines::open(s.json_file));
  fmt::print("{:>6} {:>7} {:>7} {:>5} {:>7}  {:12} {:10} {:>5}  {:>16} {:>18} {:>7}\n", "ranks",
             "tokens", "hidden", "topk", "experts", "wire", "reduction", "slots", "ferry bytes",
             "DeepEP LL bytes", "times");
  for (bench_case const& c : cases) {
    exchange_options options = options_of(c, 1);
    if (s.ranks_per_node) options.hops = hops::two;
    FERRY_TRY(std::size_t const bytes,
              window_bytes(options, ranks, device_kind::cpu, s.ranks_per_node));
    std::uint64_t const other = deepep_low_latency_bytes(static_cast<std::uint64_t>(c.experts),
                                                         static_cast<std::uint64_t>(c.tokens),
                                                         static_cast<std::uint64_t>(c.hidden));
    double const times = static_cast<double>(other) / static_cast<double>(bytes);
    fmt::print("{:>6} {:>7} {:>7} {:>5} {:>7}  {:12} {:10} {:>5}  {:>16} {:>18} {:>7.1f}\n", ranks,
               c.tokens, c.hidden, c.topk, c.experts, to_string(c.sent),
               word_of(reduction_words, c.reduction), c.slots, bytes, other, times);
    nlohmann::ordered_json line = {{"ranks", ranks},
                                   {"tokens", c.tokens},
                                   {"hidden", c.hidden},
                                   {"topk", c.topk},
                                   {"experts", c.experts},
                                   {"wire", to_string(c.sent)},
                                   {"reduction", word_of(reduction_words, c.reduction)},
                                   {"slots", c.slots},
                                   {"window_bytes", bytes},
                                   {"deepep_low_latency_bytes", other}};
    if (s.ranks_per_node) line["ranks_per_node"] = s.ranks_per_node;
    FERRY_CHECK(out.write(line.dump()));
  }
  return {};
}

}  // namespace ferry::bench
