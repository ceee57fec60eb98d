// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "measure.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

namespace ferry::bench {

double percentile(std::vector<double> values, double p) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  auto const rank = std::ceil(p / 100 * static_cast<double>(values.size()));
  auto const index = static_cast<std::size_t>(std::max(1.0, rank)) - 1;
  return values[std::min(index, values.size() - 1)];
}

namespace {

constexpr int rounds = 5, warm_ups = 3, least_samples = 5, most_samples = 500;
/// Nanoseconds.
constexpr double least_crowded_sample = 5e6;

/// When each iteration of a program began and ended here.
struct stamps {
  std::vector<std::int64_t> starts, ends;
};

/// Runs `count` measured samples of `in_a_row` iterations each.
result<void> run(subject& program, start_line& line, int& iteration, int count, int in_a_row,
                 stamps& to) {
  for (int i = 0; i < count; ++i) {
    FERRY_CHECK(program.before(iteration));
    FERRY_CHECK(line.wait());
    to.starts.push_back(nanoseconds_now());
    for (int j = 0; j < in_a_row; ++j) FERRY_CHECK(program.run(iteration++));
    to.ends.push_back(nanoseconds_now());
    FERRY_CHECK(program.after(iteration - 1));
  }
  return {};
}

result<std::vector<std::vector<std::int64_t>>> gather_numbers(
    group const& ranks, std::vector<std::int64_t> const& mine) {
  FERRY_TRY(auto const all, ranks.all_gather(std::as_bytes(std::span(mine))));
  std::vector<std::vector<std::int64_t>> numbers;
  for (bytes const& theirs : all) {
    numbers.emplace_back(theirs.size() / sizeof(std::int64_t));
    std::memcpy(numbers.back().data(), theirs.data(), theirs.size());
  }
  return numbers;
}

/// Nanoseconds of the last sample of the slowest rank.
result<double> slowest_last(group const& ranks, stamps const& warm_up) {
  FERRY_TRY(auto const all, gather_numbers(ranks, {warm_up.ends.back() - warm_up.starts.back()}));
  std::int64_t slowest = 1;
  for (auto const& theirs : all) slowest = std::max(slowest, theirs[0]);
  return static_cast<double>(slowest);
}

result<times> evaluate(group const& ranks, subject& program, stamps const& mine, int slots,
                       int in_a_row) {
  FERRY_TRY(auto const starts, gather_numbers(ranks, mine.starts));
  FERRY_TRY(auto const ends, gather_numbers(ranks, mine.ends));
  times t;
  t.name = program.name();
  t.in_a_row = in_a_row;
  t.iterations = static_cast<int>(mine.starts.size()) * in_a_row;
  double const operations = 1e3 * slots * in_a_row;
  for (auto const& of_rank : ends) {
    std::vector<double> took;
    for (std::size_t i = 0; i < of_rank.size(); ++i) {
      std::int64_t first = starts[0][i];
      for (auto const& other : starts) first = std::min(first, other[i]);
      took.push_back(static_cast<double>(of_rank[i] - first) / operations);
    }
    t.p50.push_back(percentile(took, 50));
    t.p90.push_back(percentile(took, 90));
    t.p99.push_back(percentile(took, 99));
  }
  t.slowest = static_cast<int>(std::ranges::max_element(t.p50) - t.p50.begin());
  for (part_times const& part : program.take_parts()) {
    FERRY_TRY(auto const all, gather_numbers(ranks, part.nanoseconds));
    std::vector<double> took;
    for (std::int64_t ns : all[static_cast<std::size_t>(t.slowest)])
      took.push_back(static_cast<double>(ns) / (1e3 * slots));
    if (!took.empty()) t.parts.emplace_back(part.name, percentile(took, 50));
  }
  return t;
}

}  // namespace

result<std::vector<times>> measure(group const& ranks, start_line& line,
                                   std::vector<subject*> const& programs, measuring how) {
  std::vector<stamps> taken(programs.size());
  std::vector<int> iterations(programs.size()), samples(programs.size());
  int in_a_row = 1;
  for (std::size_t p = 0; p < programs.size(); ++p) {
    stamps warm_up;
    FERRY_CHECK(run(*programs[p], line, iterations[p], warm_ups, in_a_row, warm_up));
    FERRY_CHECK(ranks.agree(programs[p]->check(iterations[p] - 1)));
    FERRY_TRY(double const slowest, slowest_last(ranks, warm_up));
    // As many for all programs as the first one, ferry, needs.
    if (p == 0 && how.in_a_row && line.crowded())
      in_a_row = static_cast<int>(std::clamp(least_crowded_sample / slowest, 1.0, 64.0));
    double const fit = how.seconds * 1e9 / (slowest * (p == 0 ? in_a_row : 1));
    samples[p] = static_cast<int>(std::clamp<double>(fit, least_samples, most_samples));
    static_cast<void>(programs[p]->take_parts());
  }
  for (int round = 0; round < rounds; ++round)
    for (std::size_t p = 0; p < programs.size(); ++p) {
      int const share = samples[p] * (round + 1) / rounds - samples[p] * round / rounds;
      FERRY_CHECK(run(*programs[p], line, iterations[p], share, in_a_row, taken[p]));
    }
  std::vector<times> all;
  for (std::size_t p = 0; p < programs.size(); ++p) {
    FERRY_TRY(times t, evaluate(ranks, *programs[p], taken[p], how.slots, in_a_row));
    all.push_back(std::move(t));
  }
  return all;
}

}  // namespace ferry::bench
