// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "step_trace.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using namespace ferry;
using namespace ferry::decode;
using testing::HasSubstr;
using testing::Not;

std::vector<rank_span> steps(int count) {
  std::vector<rank_span> spans;
  for (int step = 0; step < count; ++step)
    for (int rank = 0; rank < 2; ++rank)
      for (int part = 0; part < 2; ++part) {
        std::int64_t const at = step * 10'000'000 + part * 1'000'000;
        spans.push_back({rank, "experts", 0, part, 3, step, at, at + 1'000'000 + step});
      }
  return spans;
}

TEST(timeline, shows_one_step_of_all_ranks) {
  std::string const svg = timeline_of(steps(9));
  EXPECT_THAT(svg, HasSubstr("2 ranks, 2 microbatches, 2.00 ms"));
  EXPECT_THAT(svg, HasSubstr("rank 1 communication"));
  std::size_t titles = 0;
  for (std::size_t at = svg.find("<title>"); at != std::string::npos;
       at = svg.find("<title>", at + 1))
    ++titles;
  EXPECT_EQ(titles, 4U);
  EXPECT_THAT(svg, HasSubstr("experts layer 3 microbatch 1"));
}

TEST(timeline, takes_the_median_of_the_later_steps) {
  std::vector<rank_span> spans = steps(9);
  for (rank_span& s : spans)
    if (s.step == 0 || s.step == 8) s.end_ns += 500'000'000;  // not warm; disturbed
  EXPECT_THAT(timeline_of(spans), HasSubstr("2.00 ms"));
}

TEST(timeline, draws_no_prefill) {
  std::vector<rank_span> spans = steps(9);
  rank_span prompt = spans.back();
  prompt.phase = "prefill";
  prompt.name = "of a prompt";
  for (prompt.step = 0; prompt.step < 9; ++prompt.step) spans.push_back(prompt);
  EXPECT_EQ(timeline_of(spans), timeline_of(steps(9)));
}

TEST(timeline, refuses_to_draw_nothing) {
  std::vector<rank_span> prompts = steps(2);
  for (rank_span& s : prompts) s.phase = "prefill";
  for (auto const& spans : {std::vector<rank_span>(), prompts}) {
    result<void> const r = write_timeline(spans, "unused.svg");
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().code, error_code::invalid_state);
  }
}

}  // namespace
