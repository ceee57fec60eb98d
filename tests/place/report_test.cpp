// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "report.hpp"

#include "picture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace ferry::place_tool {
namespace {

using testing::HasSubstr;
using testing::Not;

/// Two layers of four experts on two ranks, and one placement that exchanges experts 1 and 2.
comparison small() {
  comparison all;
  all.loads = {2, 4, {3, 1, 1, 1, 0, 0, 0, 0}};
  all.topk = 2;
  all.tokens_per_step = {16};
  all.floor = {1.25};
  auto const outcome_of = [&](char const* name, placement where) {
    outcome out;
    out.name = name;
    out.balance = balance_of(where, all.loads).value();
    out.where = std::move(where);
    out.step_imbalance = {std::nullopt};
    return out;
  };
  auto const contiguous = contiguous_placement(2, 4, 2).value();
  placement other = contiguous;
  other.experts = {0, 2, 1, 3, 0, 1, 2, 3};
  all.present = outcome_of("before", contiguous);
  all.outcomes.push_back(outcome_of("contiguous", contiguous));
  all.outcomes.push_back(outcome_of("permute", other));
  all.outcomes.back().valid = false;
  all.outcomes.back().moved_bytes = 2'500'000;
  return all;
}

TEST(report, json_says_null_where_nothing_is_known) {
  auto const all = nlohmann::json::parse(json_of(small()));
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[1]["policy"], "permute");
  EXPECT_TRUE(all[1]["ranks_per_token"].is_null());
  EXPECT_TRUE(all[1]["steps"][0]["measured"].is_null());
  EXPECT_EQ(all[1]["steps"][0]["floor"], 1.25);
  EXPECT_EQ(all[1]["valid"], false);
  EXPECT_EQ(all[1]["placement"][0], (std::vector{0, 2, 1, 3}));
  EXPECT_EQ(all[1]["max_over_mean_worst"], 4.0 / 3);
}

TEST(report, table_marks_what_is_no_valid_placement_and_says_what_was_left_out) {
  auto all = small();
  all.left_out.push_back("local (no trace)");
  options o;
  o.where.num_ranks = 2;
  auto const table = table_of(all, o);
  EXPECT_THAT(table, HasSubstr("permute *"));
  EXPECT_THAT(table, HasSubstr("* holds an expert twice"));
  EXPECT_THAT(table, HasSubstr("left out: local (no trace)"));
  EXPECT_THAT(table, HasSubstr("2.5 MB"));
  all.outcomes.back().valid = true;
  EXPECT_THAT(table_of(all, o), Not(HasSubstr("* holds")));
}

TEST(report, picture_draws_what_changes_also_in_layers_without_load) {
  auto const svg = picture_of(small());
  EXPECT_THAT(svg, HasSubstr(">before<"));
  EXPECT_THAT(svg, HasSubstr(">permute<"));
  EXPECT_THAT(svg, Not(HasSubstr(">contiguous<")));  // as before
  EXPECT_THAT(svg, HasSubstr("layer 1, rank 1: 0.000 of the mean"));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

}  // namespace
}  // namespace ferry::place_tool
