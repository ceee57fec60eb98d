// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "run_case.hpp"

#include "ferry_subject.hpp"
#include "limit_subject.hpp"
#include "oracle_check.hpp"

#include <fmt/format.h>

#include <cstring>
#include <exception>

namespace ferry::bench {
namespace {

result<workload> workload_of(bench_rank const& on, bench_case const& c, settings const& s) {
  auto ids = on.choices ? take_choices(c, *on.choices) : make_choices(c, s.seed);
  if (!ids) return error{ids.error().code, describe(c) + ": " + ids.error().message};
  return workload::make(c, routes_of(c, *std::move(ids)), on.ranks.rank());
}

/// This number of all ranks, added up.
result<std::uint64_t> sum_over(group const& ranks, std::uint64_t mine) {
  FERRY_TRY(auto const all, ranks.all_gather(std::as_bytes(std::span(&mine, 1))));
  std::uint64_t sum = 0;
  for (bytes const& theirs : all) {
    std::uint64_t value = 0;
    std::memcpy(&value, theirs.data(), std::min(theirs.size(), sizeof value));
    sum += value;
  }
  return sum;
}

/// ferry counts what it sends; the routing says what it should.
result<void> check_traffic(group const& ranks, workload const& work, exchange const& ep) {
  exchange_counters const counted = ep.counters();
  FERRY_TRY(std::uint64_t const others, sum_over(ranks, counted.dispatch_bytes));
  FERRY_TRY(std::uint64_t const self, sum_over(ranks, counted.dispatch_self_bytes));
  payload const rows = work.sent();
  std::size_t const row = work.size().sent + work.size().scales;
  std::uint64_t const route = std::uint64_t{8} * static_cast<std::uint64_t>(work.of().topk);
  std::uint64_t const steps = counted.steps;
  if (others == steps * (rows.others + rows.others / row * route) &&
      self == steps * (rows.self + rows.self / row * route))
    return {};
  return error{error_code::internal,
               fmt::format("ferry sent {} and {} bytes in {} steps; a step's rows have {} and {}",
                           others, self, steps, rows.others, rows.self)};
}

payload carried_by(workload const& work) {
  payload sum;
  auto const add = [&](payload p) {
    sum.others += p.others;
    sum.self += p.self;
  };
  if (work.of().op != operation::combine) add(work.sent());
  if (work.of().op != operation::dispatch) add(work.returned());
  return sum;
}

result<std::unique_ptr<cpu_executor>> threads_of(bench_case const& c) {
  try {
    return std::make_unique<cpu_executor>(c.queues);
  } catch (std::exception const& e) {
    return error{error_code::out_of_memory, fmt::format("{} threads: {}", c.queues, e.what())};
  }
}

}  // namespace

result<outcome> run_case(bench_rank const& on, bench_case const& c, settings const& s) {
  group const& ranks = on.ranks;
  auto made = workload_of(on, c, s);
  FERRY_CHECK(ranks.agree(made ? result<void>{} : result<void>{made.error()}));
  workload const work = *std::move(made);
  exchange_options options = options_of(c, work.per_expert());
  options.carrier = s.carrier;
  options.hops = s.hops;
  FERRY_TRY(exchange ep, make_exchange(on.exchanging, options));
  FERRY_CHECK(check_by_oracle(ranks, work, ep, s.seed, s.ranks_per_node));

  auto threads = threads_of(c);
  FERRY_CHECK(ranks.agree(threads ? result<void>{} : result<void>{threads.error()}));
  FERRY_TRY(start_line line, start_line::make(ranks, c.queues));
  std::vector<std::unique_ptr<subject>> programs;
  programs.push_back(std::make_unique<ferry_subject>(work, ep, **threads));
  FERRY_TRY(auto limit, limit_subject::make(ranks, work, **threads));
  limit_subject const& copies = *limit;
  programs.push_back(std::move(limit));
  if (on.rivals) FERRY_CHECK(ranks.agree(on.rivals(work, programs)));

  std::vector<subject*> all;
  for (auto const& program : programs) all.push_back(program.get());
  outcome o;
  o.of = c;
  o.carried = carried_by(work);
  o.started = on.started;
  o.ranks_per_node = s.ranks_per_node;
  o.carrier = s.carrier;
  o.hops = ep.options().hops;
  if (on.choices) o.choices_file = on.choices->file;
  FERRY_TRY(o.programs,
            measure(ranks, line, all,
                    {.seconds = s.seconds, .slots = c.slots, .in_a_row = c.op == operation::step}));
  FERRY_TRY(o.limit_bytes, sum_over(ranks, copies.copied()));
  // Two hops carry less than the routing says, which counts ranks and not nodes.
  if (ep.options().hops != hops::two) FERRY_CHECK(check_traffic(ranks, work, ep));
  // Nobody takes an exchange down that another rank still uses.
  FERRY_CHECK(ranks.barrier());
  return o;
}

}  // namespace ferry::bench
