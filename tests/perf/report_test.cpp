// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "report.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace {

using namespace ferry;
using namespace ferry::bench;

times of(char const* name, std::vector<double> p50) {
  times t;
  t.name = name;
  t.p50 = t.p90 = t.p99 = std::move(p50);
  for (std::size_t r = 0; r < t.p50.size(); ++r)
    if (t.p50[r] > t.p50[static_cast<std::size_t>(t.slowest)]) t.slowest = static_cast<int>(r);
  return t;
}

outcome an_outcome() {
  outcome o;
  o.of.ranks = 2;
  o.programs = {of("ferry", {10, 20}), of("limit", {15, 10}), of("mpi", {100, 90})};
  o.carried = {5, 6};
  return o;
}

TEST(bench_report, divides_the_slowest_ranks_by_each_other) {
  outcome const o = an_outcome();
  EXPECT_EQ(o.ratio("limit"), 0.75);
  EXPECT_EQ(o.ratio("mpi"), 5.0);
  EXPECT_EQ(o.ratio("mpi-naive"), std::nullopt);
}

TEST(bench_report, is_one_line_of_json_with_null_for_what_did_not_run) {
  std::string const line = to_json(an_outcome());
  EXPECT_EQ(line.find('\n'), std::string::npos);
  auto const json = nlohmann::json::parse(line);
  EXPECT_EQ(json["p50_us"], 20);
  EXPECT_EQ(json["slowest_rank"], 1);
  EXPECT_EQ(json["bytes"], 5);
  EXPECT_EQ(json["self_bytes"], 6);
  EXPECT_EQ(json["ratio_limit"], 0.75);
  EXPECT_EQ(json["ratio_mpi"], 5);
  EXPECT_TRUE(json["ratio_mpi_naive"].is_null());
}

TEST(bench_report, has_rows_as_wide_as_its_head) {
  EXPECT_EQ(table_row(an_outcome()).size(), table_head().size());
}

}  // namespace
