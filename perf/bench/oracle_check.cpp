// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "oracle_check.hpp"

#include "exchange/rank_run.hpp"

namespace ferry::bench {
namespace {

oracle::world world_of(workload const& work, exchange const& ep, std::uint64_t seed,
                       int ranks_per_node) {
  bench_case const& c = work.of();
  oracle::world w;
  w.ranks = c.ranks;
  w.options = ep.options();
  if (w.options.hops == hops::two) w.ranks_per_node = ranks_per_node;
  w.fnuz.assign(static_cast<std::size_t>(c.ranks), false);
  oracle::dice from(seed);
  oracle::step s;
  for (int r = 0; r < c.ranks; ++r) {
    auto const* const first = work.routing().of(r, 0);
    std::vector<std::int64_t> ids(first, first + std::int64_t{c.tokens} * c.topk);
    s.brought.push_back(oracle::rank_step_of(w, from, r, std::move(ids)));
  }
  for (int r = 0; r < c.ranks; ++r) s.received.push_back(oracle::expect_received(w, s, r));
  // What comes home to other ranks is theirs to compare.
  s.output.resize(static_cast<std::size_t>(c.ranks));
  s.exact.resize(static_cast<std::size_t>(c.ranks));
  auto const own = static_cast<std::size_t>(work.rank());
  for (int t = 0; t < c.tokens; ++t) {
    std::vector<float> const row = oracle::expect_output(w, s, work.rank(), t);
    s.output[own].insert(s.output[own].end(), row.begin(), row.end());
  }
  if (oracle::is_exact(w, s)) s.exact[own] = oracle::exact_output(w, s, work.rank());
  w.steps.push_back(std::move(s));
  return w;
}

}  // namespace

result<void> check_by_oracle(group const& ranks, workload const& work, exchange& ep,
                             std::uint64_t seed, int ranks_per_node) {
  oracle::world const w = world_of(work, ep, seed, ranks_per_node);
  oracle::complaints wrong;
  queue q;
  for (int slot = 0; slot < work.of().slots; ++slot) {
    oracle::rank_slot run(w, work.rank(), slot, ep, wrong);
    if (work.of().results == result_rows::summed) run.hand_over_sums();
    do {
      if (!run.advance(q)) break;
    } while (!run.idle());
  }
  result<void> outcome;
  if (!wrong.none())
    outcome = error{error_code::internal, "not what the oracle says: " + wrong.text()};
  return ranks.agree(outcome);
}

}  // namespace ferry::bench
