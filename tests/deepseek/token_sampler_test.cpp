// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/deepseek/token_sampler.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

namespace ferry::deepseek {
namespace {

using testing::HasSubstr;
using ids = std::vector<std::int32_t>;

/// Logits in a device's memory.
struct there {
  device where;
  queue q;
  device_memory memory;
  matrix<float const> view;

  there(std::string const& name, std::vector<float> const& values, std::int64_t columns)
      : where(device::open(name).value()),
        q(queue::on(where).value()),
        memory(where.allocate(memory_kind::local, values.size() * sizeof(float)).value()),
        view(dense(reinterpret_cast<float const*>(memory.data()), std::ssize(values) / columns,
                   columns)) {
    q.copy(memory.data(), values.data(), values.size() * sizeof(float)).value();
    q.wait(std::chrono::seconds(10)).value();
  }
};

std::vector<float> random_logits(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> values(n);
  // Few values, so that the largest is there more than once.
  for (float& v : values) v = static_cast<float>(random() % 64) / 8;
  return values;
}

/// What several calls choose for texts that take turns.
ids chosen_on(std::string const& name, float temperature, std::uint64_t seed) {
  std::int64_t const rows = 5, columns = 1500;
  there const at(name, random_logits(static_cast<std::size_t>(rows * columns), 3), columns);
  queue q = at.q;
  auto sampler =
      token_sampler::make(at.where,
                          {.slots = 6, .max_rows = 5, .temperature = temperature, .seed = seed})
          .value();
  sampler.begin(q, 2, 77).value();
  ids found;
  for (ids const& slots : {ids{0, 1, 2, 3, 4}, ids{5, -1, 2, -1, 0}, ids{2, 3, 4, 5, -1}})
    for (std::size_t row = 0; auto const& c : sampler.choose(q, at.view, slots).value())
      if (slots[row++] >= 0) found.push_back(id_of(c).value());
  return found;
}

TEST(token_sampler, chooses_the_same_ids_on_every_device) {
  for (float temperature : {0.0F, 0.7F, 3.0F}) {
    ids const here = chosen_on("cpu", temperature, 5);
    EXPECT_EQ(here.size(), 12u);
    EXPECT_EQ(chosen_on("emulated:32", temperature, 5), here) << temperature;
    EXPECT_EQ(chosen_on("emulated:64", temperature, 5), here) << temperature;
  }
  EXPECT_NE(chosen_on("cpu", 3, 5), chosen_on("cpu", 3, 6));
  EXPECT_EQ(chosen_on("cpu", 0, 5), chosen_on("cpu", 0, 6));
}

ids texts_of(std::string const& name, std::vector<std::uint64_t> const& texts, std::size_t shown) {
  std::int64_t const rows = std::ssize(texts), columns = 200;
  there const at(name, std::vector<float>(static_cast<std::size_t>(rows * columns), 1), columns);
  queue q = at.q;
  int const n = static_cast<int>(rows);
  auto sampler =
      token_sampler::make(at.where, {.slots = n, .max_rows = n, .temperature = 1, .seed = 9})
          .value();
  ids slots;
  for (int i = 0; i < n; ++i) {
    sampler.begin(q, i, texts[static_cast<std::size_t>(i)]).value();
    slots.push_back(i);
  }
  ids found;
  for (int step = 0; step < 8; ++step)
    found.push_back(id_of(sampler.choose(q, at.view, slots).value()[shown]).value());
  return found;
}

TEST(token_sampler, draws_for_a_text_whatever_others_there_are) {
  for (char const* name : {"cpu", "emulated:64"}) {
    ids const alone = texts_of(name, {4}, 0);
    EXPECT_EQ(texts_of(name, {1, 9, 4}, 2), alone) << name;
    EXPECT_NE(texts_of(name, {5}, 0), alone) << name;
  }
}

TEST(token_sampler, says_which_logit_is_not_fit) {
  std::vector<float> logits(3 * 20, 0);
  logits[7] = NAN;
  logits[20 + 3] = HUGE_VALF;
  logits[40 + 5] = 1;
  for (char const* name : {"cpu", "emulated:32"}) {
    there const at(name, logits, 20);
    queue q = at.q;
    auto sampler = token_sampler::make(at.where, {.slots = 3, .max_rows = 3}).value();
    auto const chosen = sampler.choose(q, at.view, ids{0, 1, 2}).value();
    auto const nan = id_of(chosen[0]), infinite = id_of(chosen[1]);
    ASSERT_FALSE(nan);
    EXPECT_EQ(nan.error().code, error_code::malformed_input);
    EXPECT_EQ(nan.error().message, "the logit of token 7 is NaN");
    ASSERT_FALSE(infinite);
    EXPECT_THAT(infinite.error().message, HasSubstr("of token 3, is infinite"));
    EXPECT_EQ(id_of(chosen[2]).value(), 5);
  }
}

TEST(token_sampler, refuses_what_it_was_not_made_for) {
  for (sampling const& wrong :
       {sampling{.slots = 0}, sampling{.max_rows = 0}, sampling{.temperature = -1},
        sampling{.temperature = NAN}, sampling{.temperature = HUGE_VALF}}) {
    auto const made = token_sampler::make(device(), wrong);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, error_code::invalid_argument);
  }
  there const at("emulated:32", std::vector<float>(40), 20);
  queue q = at.q;
  auto sampler = token_sampler::make(at.where, {.slots = 2, .max_rows = 2}).value();
  auto const message = [&](queue& on, ids const& slots) {
    auto const r = sampler.choose(on, at.view, slots);
    return r ? std::string() : r.error().message;
  };
  EXPECT_THAT(message(q, {0, 2}), HasSubstr("slot 2 of a sampler of 2"));
  EXPECT_THAT(message(q, {0}), HasSubstr("2 rows of 20 logits for 1 slots"));
  queue cpu;
  EXPECT_THAT(message(cpu, {0, 1}), HasSubstr("a queue of cpu"));
  EXPECT_FALSE(sampler.begin(q, -1, 0));
  EXPECT_FALSE(sampler.begin(q, 2, 0));
  EXPECT_EQ(message(q, {0, 1}), "");
}

}  // namespace
}  // namespace ferry::deepseek
