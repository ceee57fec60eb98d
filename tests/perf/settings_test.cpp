// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "settings.hpp"

#include <gtest/gtest.h>

namespace {

using namespace ferry;
using namespace ferry::bench;

TEST(bench_settings, span_a_case_for_each_combination) {
  settings s;
  s.ops = {operation::step};
  s.tokens = {1, 2};
  s.hidden = {64, 128, 256};
  s.queues = {1, 2};
  auto const cases = cases_of(s, 3).value();
  ASSERT_EQ(cases.size(), 12u);
  EXPECT_EQ(cases[0].ranks, 3);
  EXPECT_EQ(cases[0].tokens, 1);
  EXPECT_EQ(cases[11].tokens, 2);
  EXPECT_EQ(cases[11].hidden, 256);
  // A queue has a slot of its own, unless slots are given.
  EXPECT_EQ(cases[11].slots, 2);
  s.slots_given = true;
  s.slots = {1, 4};
  EXPECT_FALSE(cases_of(s, 3)) << "two queues cannot share one slot";
}

TEST(bench_settings, give_opaque_rows_a_scale_for_each_128_columns) {
  bench_case c;
  c.hidden = 300;
  c.sent = wire::opaque;
  exchange_options const o = options_of(c, 0);
  EXPECT_EQ(o.opaque_row_bytes, 300u);
  EXPECT_EQ(o.opaque_scale_bytes, 12u);
  EXPECT_EQ(sizes_of(c).home, 600u);
  c.sent = wire::fp8_ue8m0;
  EXPECT_EQ(sizes_of(c).scales, 3u);
  EXPECT_EQ(sizes_of(c).given, 600u);
}

TEST(bench_settings, name_a_case_in_the_words_of_the_command_line) {
  bench_case c;
  c.tokens = 8;
  c.sent = wire::fp8_e4m3;
  EXPECT_NE(describe(c).find("op=step tokens=8"), std::string::npos);
  EXPECT_NE(describe(c).find("wire=fp8_e4m3"), std::string::npos);
}

TEST(bench_settings, refuse_what_ferry_refuses) {
  settings s;
  s.wires = {wire::opaque};
  EXPECT_TRUE(cases_of(s, 2));
  EXPECT_FALSE(cases_of(s, 0));
}

}  // namespace
