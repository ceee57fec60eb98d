// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "launch.hpp"
#include "window_sizes.hpp"

#include <fmt/format.h>
#include <ferry/balance/load_files.hpp>

#include <cstdio>
#include <exception>
#include <iostream>

namespace ferry::bench {
namespace {

constexpr int most_threads = 64;

/// Ranks of the run, or why there is none.
result<int> ranks_of(settings const& s) {
  auto const of_mpirun = ranks_of_mpirun();
  if (of_mpirun && s.ranks)
    return error{error_code::invalid_argument,
                 fmt::format("--ranks {} under mpirun, which started {}: its ranks are taken; "
                             "leave --ranks out",
                             *s.ranks, *of_mpirun)};
  if (!s.sizes && s.ranks && *s.ranks > most_threads)
    return error{error_code::invalid_argument,
                 fmt::format("--ranks {}: at most {} threads, other than with --sizes", *s.ranks,
                             most_threads)};
  return of_mpirun ? *of_mpirun : s.ranks.value_or(2);
}

result<void> say(group const& ranks, std::string const& line) {
  if (ranks.rank() != 0) return {};
  fmt::print("{}\n", line);
  if (std::fflush(stdout) != 0) return error{error_code::io, "standard output cannot be written"};
  return {};
}

result<void> bench_on(bench_rank on, settings const& s, std::vector<bench_case> const& cases,
                      recorded_choices const* choices) {
  on.choices = choices;
  bool const first = on.ranks.rank() == 0;
  auto out = json_lines::open(first ? s.json_file : std::nullopt);
  FERRY_CHECK(on.ranks.agree(out ? result<void>{} : result<void>{out.error()}));
  FERRY_CHECK(
      say(on.ranks, fmt::format("{} ranks ({}), {} cores; times of the slowest rank; ratios "
                                "above 1: ferry is faster",
                                on.ranks.size(), on.started, usable_cores())));
  FERRY_CHECK(say(on.ranks, table_head()));
  for (bench_case const& c : cases) {
    FERRY_TRY(outcome const o, run_case(on, c, s));
    result<void> told = say(on.ranks, table_row(o));
    if (told && first) told = out->write(to_json(o));
    FERRY_CHECK(on.ranks.agree(told));
  }
  return {};
}

result<void> run(settings s) {
  FERRY_TRY(int const ranks, ranks_of(s));
  std::optional<recorded_choices> choices;
  if (s.choices_file) {
    FERRY_TRY(routing_trace trace, read_choices(*s.choices_file));
    choices = {*s.choices_file, std::move(trace)};
    if (!s.topk_given) s.topk = {choices->trace.topk};
  }
  if (s.sizes) {
    // Every rank of mpirun would print the same.
    char const* const rank = std::getenv("OMPI_COMM_WORLD_RANK");
    return rank && std::string_view(rank) != "0" ? result<void>{} : print_sizes(s, ranks);
  }
  FERRY_TRY(auto const cases, cases_of(s, ranks));
  // What a case's routing cannot be is said before anything is measured.
  for (bench_case const& c : cases) {
    auto const ids = choices ? take_choices(c, *choices) : make_choices(c, s.seed);
    if (!ids) return error{ids.error().code, describe(c) + ": " + ids.error().message};
  }
  return on_all_ranks(s, [&](bench_rank on) {
    return bench_on(std::move(on), s, cases, choices ? &*choices : nullptr);
  });
}

int status_of(error const& e) {
  switch (e.code) {
    case error_code::invalid_argument:
    case error_code::malformed_input:
    case error_code::unsupported: return misused;
    case error_code::timeout:
    case error_code::unreachable: return lost;
    default: return failed;
  }
}

int bench_main(int argc, char** argv) {
  auto parsed = parse(argc, argv);
  if (auto const* const status = std::get_if<int>(&parsed))
    return *status == succeeded && !std::cout.flush() ? failed : *status;
  auto const done = run(std::get<settings>(std::move(parsed)));
  if (done) return std::fflush(stdout) == 0 ? succeeded : failed;
  std::fflush(stdout);
  fmt::print(stderr, "ferry-bench: {}: {}\n", to_string(done.error().code), done.error().message);
  return status_of(done.error());
}

}  // namespace
}  // namespace ferry::bench

int main(int argc, char** argv) {
  try {
    return ferry::bench::bench_main(argc, argv);
  } catch (std::exception const& e) {
    std::fprintf(stderr, "ferry-bench: %s\n", e.what());
    return ferry::bench::failed;
  }
}
