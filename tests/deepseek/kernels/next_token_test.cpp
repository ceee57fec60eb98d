// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/deepseek/kernels/next_token.hpp>

#include "deepseek/kernels/every_strip.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace ferry::deepseek {
namespace {

using test::odd_floats;
using test::random_floats;
using test::stored_by_every_strip;

using state = chosen_token::state;
constexpr chosen_token nothing{-7, state::chosen};

std::vector<chosen_token> chosen_everywhere(std::vector<float> const& logits, std::int64_t n,
                                            std::vector<std::int32_t> const& slots) {
  auto const rows = static_cast<std::int64_t>(slots.size());
  return stored_by_every_strip(slots.size(), nothing, [&](auto const& s, chosen_token* out) {
    next_token{.logits = dense(logits.data(), rows, n), .slots = slots.data(), .chosen = out}(s);
  });
}

TEST(next_token, takes_the_lowest_id_of_the_largest_logit) {
  for (std::int64_t n : {1, 16, 33, 5000}) {
    auto logits = random_floats(static_cast<std::size_t>(3 * n));
    auto const at = static_cast<std::size_t>(n / 2);
    logits[at] = 2;
    logits[static_cast<std::size_t>(n - 1)] = 2;
    logits[static_cast<std::size_t>(n)] = 5;
    auto const found = chosen_everywhere(logits, n, {0, 1, -1});
    EXPECT_EQ(found[0].id, static_cast<int>(at));
    EXPECT_EQ(found[0].what, state::chosen);
    EXPECT_EQ(found[1].id, 0);
    EXPECT_EQ(found[2].id, nothing.id) << "not asked for";
  }
}

TEST(next_token, says_which_logit_is_none_or_has_no_bounds) {
  std::vector<float> logits(4 * 40, 1);
  logits[33] = NAN;
  logits[20] = NAN;
  logits[40 + 17] = HUGE_VALF;
  std::fill(logits.begin() + 80, logits.begin() + 120, -HUGE_VALF);
  logits[120] = -HUGE_VALF;
  auto const found = chosen_everywhere(logits, 40, {0, 1, 2, 3});
  EXPECT_EQ(found[0].what, state::not_a_number);
  EXPECT_EQ(found[0].id, 20);
  EXPECT_EQ(found[1].what, state::without_bounds);
  EXPECT_EQ(found[1].id, 17);
  EXPECT_EQ(found[2].what, state::without_bounds);
  EXPECT_EQ(found[3].what, state::chosen);
  EXPECT_EQ(found[3].id, 1);
}

/// The id that the draw of this state falls on, summed up in f64.
std::int32_t expected_draw(float const* logits, std::int64_t n, double temperature,
                           std::uint64_t from) {
  double const largest = *std::max_element(logits, logits + n);
  double total = 0;
  for (std::int64_t i = 0; i < n; ++i) total += std::exp((logits[i] - largest) / temperature);
  double rest = draw_of(next_state(from)) * total;
  for (std::int64_t i = 0; i < n; ++i) {
    rest -= std::exp((logits[i] - largest) / temperature);
    if (rest < 0) return static_cast<std::int32_t>(i);
  }
  return -1;
}

TEST(next_token, draws_by_its_slot_s_state_alone_and_moves_it_on) {
  for (std::int64_t n : {5, 40, 3000}) {
    auto const logits = random_floats(static_cast<std::size_t>(6 * n), 4);
    std::vector<std::int32_t> const slots = {3, 0, -1, 5, 1, 2};
    for (std::uint64_t seed : {1, 2, 3}) {
      // The states stand behind what was chosen: both must be the same everywhere.
      auto const found =
          stored_by_every_strip(std::vector<std::uint64_t>([&] {
                                  std::vector<std::uint64_t> cells(12);
                                  for (std::size_t i = 0; i < 6; ++i)
                                    cells[6 + i] = first_state(seed, i);
                                  return cells;
                                }()),
                                0, [&](auto const& s, std::uint64_t* out, float*) {
                                  static_assert(sizeof(chosen_token) == sizeof *out);
                                  next_token{.logits = dense(logits.data(), 6, n),
                                             .slots = slots.data(),
                                             .states = out + 6,
                                             .temperature = 0.8F,
                                             .chosen = reinterpret_cast<chosen_token*>(out)}(s);
                                });
      for (std::size_t row = 0; row < 6; ++row) {
        if (slots[row] < 0) {
          EXPECT_EQ(found[row], 0u);
          continue;
        }
        auto const slot = static_cast<std::size_t>(slots[row]);
        chosen_token chosen;
        std::memcpy(&chosen, &found[row], sizeof chosen);
        EXPECT_EQ(chosen.id, expected_draw(logits.data() + static_cast<std::int64_t>(row) * n, n,
                                           double{0.8F}, first_state(seed, slot)))
            << n << ", row " << row;
        EXPECT_EQ(found[6 + slot], next_state(first_state(seed, slot)));
      }
      EXPECT_EQ(found[6 + 4], first_state(seed, 4)) << "nobody drew";
    }
  }
}

TEST(next_token, draws_each_id_as_often_as_its_weight_says) {
  std::vector<float> const one = {0, std::log(2.0F), -HUGE_VALF, std::log(5.0F)};
  std::vector<float> logits;
  std::vector<std::uint64_t> states;
  std::int64_t const rows = 8000;
  for (std::int64_t i = 0; i < rows; ++i) {
    logits.insert(logits.end(), one.begin(), one.end());
    states.push_back(first_state(9, static_cast<std::uint64_t>(i)));
  }
  std::vector<chosen_token> chosen(rows);
  next_token{.logits = dense(logits.data(), rows, 4),
             .states = states.data(),
             .temperature = 1,
             .chosen = chosen.data()}(test::host_strip{});
  int counts[4] = {};
  for (chosen_token const& c : chosen) ++counts[c.id];
  EXPECT_NEAR(counts[0], 1000, 150);
  EXPECT_NEAR(counts[1], 2000, 200);
  EXPECT_EQ(counts[2], 0);
  EXPECT_NEAR(counts[3], 5000, 250);
}

}  // namespace
}  // namespace ferry::deepseek
