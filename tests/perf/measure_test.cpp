// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "measure.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace {

using namespace ferry;
using namespace ferry::bench;

TEST(bench_measure, takes_the_smallest_number_that_enough_do_not_exceed) {
  EXPECT_EQ(percentile({}, 50), 0);
  EXPECT_EQ(percentile({7}, 50), 7);
  EXPECT_EQ(percentile({7}, 99), 7);
  EXPECT_EQ(percentile({4, 1, 3, 2}, 50), 2);
  EXPECT_EQ(percentile({4, 1, 3, 2}, 75), 3);
  EXPECT_EQ(percentile({4, 1, 3, 2}, 76), 4);
  std::vector<double> hundred;
  for (int i = 1; i <= 100; ++i) hundred.push_back(i);
  EXPECT_EQ(percentile(hundred, 90), 90);
  EXPECT_EQ(percentile(hundred, 99), 99);
}

// Sleeps longer on one rank than on the other.
class sleeper final : public subject {
 public:
  explicit sleeper(std::chrono::milliseconds time) : time_(time) {}
  std::string name() const override { return "sleeper"; }
  result<void> run(int) override {
    std::this_thread::sleep_for(time_);
    ++runs;
    return {};
  }
  result<void> before(int) override { return ++befores, result<void>{}; }
  result<void> after(int) override { return ++afters, result<void>{}; }
  int runs = 0, befores = 0, afters = 0;

 private:
  std::chrono::milliseconds time_;
};

TEST(bench_measure, reports_the_slowest_rank_from_the_first_start_on) {
  thread_ranks const meeting(2);
  std::vector<times> seen[2];
  int counts[2][3];
  auto const run = [&](int r) {
    group const ranks = join(meeting.rank(r)).value();
    start_line line = start_line::make(ranks, 1).value();
    sleeper s(std::chrono::milliseconds(r == 0 ? 1 : 4));
    seen[r] = measure(ranks, line, {&s}, {.seconds = 0.02}).value();
    counts[r][0] = s.befores;
    counts[r][1] = s.runs;
    counts[r][2] = s.afters;
  };
  std::thread other(run, 1);
  run(0);
  other.join();
  for (auto const& all : seen) {
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(all[0].slowest, 1);
    EXPECT_GE(all[0].p50[1], 4000);
    EXPECT_GE(all[0].p50[0], 1000);
    EXPECT_LE(all[0].p50[1], all[0].p99[1]);
    EXPECT_GE(all[0].iterations, 5);
  }
  for (auto const& c : counts) {
    EXPECT_EQ(c[0], c[1]);
    EXPECT_EQ(c[1], c[2]);
  }
}

TEST(bench_measure, ends_with_the_error_of_a_program_on_any_rank) {
  class failing final : public subject {
   public:
    std::string name() const override { return "failing"; }
    result<void> run(int) override { return {}; }
    result<void> check(int) const override { return error{error_code::internal, "wrong sum"}; }
  };
  thread_ranks const meeting(1);
  group const ranks = join(meeting.rank(0)).value();
  start_line line = start_line::make(ranks, 1).value();
  failing f;
  auto const r = measure(ranks, line, {&f}, {});
  ASSERT_FALSE(r);
  EXPECT_NE(r.error().message.find("wrong sum"), std::string::npos);
}

TEST(bench_measure, says_when_a_rank_does_not_come_to_the_start) {
  thread_ranks const meeting(2);
  std::thread other([&] {
    group const ranks = join(meeting.rank(1)).value();
    start_line line = start_line::make(ranks, 1).value();
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
  });
  group const ranks = join(meeting.rank(0), {.timeout = std::chrono::milliseconds(60)}).value();
  start_line line = start_line::make(ranks, 1).value();
  auto const waited = line.wait();
  other.join();
  ASSERT_FALSE(waited);
  EXPECT_EQ(waited.error().code, error_code::timeout);
}

}  // namespace
