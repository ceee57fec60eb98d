// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <agreement.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <thread>

namespace ferry::decode {
namespace {

using lists = std::vector<std::vector<std::int32_t>>;

/// What each of three ranks gets to hear.
std::vector<result<void>> outcomes(std::function<std::vector<setting>(int)> const& settings) {
  auto ranks = threads(3);
  std::vector<result<void>> all(3);
  std::vector<std::jthread> running;
  for (int rank = 0; rank < 3; ++rank)
    running.emplace_back([&, rank] {
      auto group = join(ranks.rank(rank)).value();
      all[static_cast<std::size_t>(rank)] = check_agreement(group, settings(rank));
    });
  running.clear();
  return all;
}

void expect_everywhere(std::vector<result<void>> const& all, std::string const& message) {
  for (auto const& one : all) {
    ASSERT_FALSE(one) << message;
    EXPECT_EQ(one.error().code, error_code::invalid_argument);
    EXPECT_EQ(one.error().message, message);
  }
}

TEST(agreement, is_there_where_all_are_started_alike) {
  for (auto const& one : outcomes([](int) { return settings_of({}, lists{{1, 2}, {3}}); }))
    EXPECT_TRUE(one);
}

TEST(agreement, names_who_differs_and_in_what_on_every_rank) {
  auto with = [](std::function<void(options&)> const& change) {
    return outcomes([&](int rank) {
      options o;
      if (rank == 1) change(o);
      return settings_of(o, lists{{1}});
    });
  };
  expect_everywhere(with([](options& o) { o.max_new_tokens = 12; }),
                    "rank 1 was started with another --max-new-tokens (12) than rank 0 (64)");
  expect_everywhere(with([](options& o) { o.seed = 7; }),
                    "rank 1 was started with another --seed (7) than rank 0 (0)");
  expect_everywhere(with([](options& o) { o.temperature = 0.5; }),
                    "rank 1 was started with another --temperature (0.5) than rank 0 (0)");
  expect_everywhere(with([](options& o) { o.ignore_eos = true; }),
                    "rank 1 was started with another --ignore-eos (given) than rank 0 (not given)");
  expect_everywhere(
      with([](options& o) { o.reduction = reduction::per_choice; }),
      "rank 1 was started with another --reduction (per_choice) than rank 0 (per_rank)");
  expect_everywhere(with([](options& o) { o.combine_wire = wire::bf16; }),
                    "rank 1 was started with another --combine-wire (bf16) than rank 0 (f32)");
}

TEST(agreement, covers_the_prompts_and_their_limits) {
  expect_everywhere(outcomes([](int rank) {
                      return settings_of({}, rank == 2 ? lists{{1, 2}, {3}} : lists{{1}, {2, 3}});
                    }),
                    "rank 2 was started with another list of prompts than rank 0");
  expect_everywhere(outcomes([](int rank) {
                      return settings_of({}, rank == 0 ? lists{{1}} : lists{{1}, {2}});
                    }),
                    "rank 1 was started with another number of prompts (2) than rank 0 (1)");
}

TEST(agreement, takes_the_fingerprints_that_fnv_1a_gives) {
  EXPECT_EQ(fingerprint(""), "cbf29ce484222325");
  EXPECT_EQ(fingerprint("a"), "af63dc4c8601ec8c");
  EXPECT_EQ(fingerprint("foobar"), "85944171f73967e8");
}

}  // namespace
}  // namespace ferry::decode
