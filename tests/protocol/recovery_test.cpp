// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// R9: what becomes of windows when a rank has died. Ranks take steps until one of them stops, in
// the middle of whatever it does; its stores may still be on their way. Then the ranks begin anew,
// the lost one among them (it was only late, or was started again), on windows that a policy gives.
// The policies that reuse windows must be found out, but the one that first takes the old rank's
// access away; ferry's, which takes fresh memory, must not.

#include "protocol/stepped_exchange.hpp"

#include <gtest/gtest.h>

#include <iostream>

namespace ferry::protocol_test {
namespace {

constexpr int victim = 1;
constexpr run_shape before{
    .steps = 8, .release_some = false, .slow_self = false, .check_ahead = false};

/// Steps until rank 1 has stored so many times; then it stores nothing more, and all give up.
struct until_it_stops : conduct {
  explicit until_it_stops(int stores) : left(stores) {}
  bool gone(agent const& a) {
    if (a.rank.index != victim) return false;
    if (left > 0 && --left > 0) return false;
    a.rank.all.order.stop();
    return true;
  }
  void put(agent const& a, int to, std::size_t offset, std::byte const* from,
           std::size_t bytes) override {
    if (!gone(a)) conduct::put(a, to, offset, from, bytes);
  }
  void publish(agent const& a, int to, flag kind, std::size_t offset, std::uint64_t word) override {
    if (!gone(a)) conduct::publish(a, to, kind, offset, word);
  }
  int left;
};

/// Steps while stores of another time come in.
struct with_late_stores : conduct {
  explicit with_late_stores(slow_memory& m, std::uint64_t seed) : late(m), random(seed) {}
  void some_come() {
    while (!late.idle() && random.once_in(4)) late.move_one();
  }
  // Rows of this time differ from those of before.
  bool step(stepped_rank& r, int n) override { return conduct::step(r, n + 20); }
  bool wait(agent const& a, awaited const& what, std::uint64_t const* word,
            std::uint64_t& value) override {
    some_come();
    return conduct::wait(a, what, word, value);
  }
  void put(agent const& a, int to, std::size_t offset, std::byte const* from,
           std::size_t bytes) override {
    some_come();
    conduct::put(a, to, offset, from, bytes);
  }
  void publish(agent const& a, int to, flag kind, std::size_t offset, std::uint64_t word) override {
    some_come();
    conduct::publish(a, to, kind, offset, word);
  }
  slow_memory& late;
  chance random;
};

/// What is done about windows before ranks begin anew.
struct policy {
  bool fresh = false;               ///< other memory
  bool revoke = false;              ///< the lost rank's stores cannot land any more
  std::uint64_t epochs_before = 0;  ///< words carry a generation: no old one is taken for a new
};

verdict begin_anew(policy const& how, std::uint64_t seed) {
  chance random(seed);
  until_it_stops first_time(1 + random.below(120));
  run first(before, first_time, seed);
  first.play();
  // All that the living ranks stored has come: they have met since.
  first.memory.show_all_but(victim);
  if (how.revoke) first.memory.drop_all();

  run_shape shape = before;
  shape.epochs_before = how.epochs_before;
  std::vector<window> windows;
  if (!how.fresh)
    for (auto const& r : first.ranks) {
      std::memset(r->memory.data(), 0, r->memory.size());
      windows.push_back(r->memory);
    }
  with_late_stores second_time(first.memory, seed + 1);
  run second(shape, second_time, seed + 1000, windows);
  return second.play();
}

constexpr int most_runs = 1500;

void expect_right(policy const& how) {
  for (int seed = 1; seed <= (FERRY_THREAD_SANITIZER ? 30 : 120); ++seed) {
    verdict const v = begin_anew(how, static_cast<std::uint64_t>(seed));
    ASSERT_EQ(v.what, outcome::right) << to_string(v.what) << ", " << v.text;
  }
}
// By a wrong row or sum; runs that are stuck, because an old word has replaced a new one, prove
// less.
void expect_found(policy const& how) {
  for (int seed = 1; seed <= most_runs; ++seed) {
    verdict const v = begin_anew(how, static_cast<std::uint64_t>(seed));
    if (v.what != outcome::wrong_data) continue;
    std::cout << to_string(v.what) << ", " << v.text << "\n";
    EXPECT_EQ(begin_anew(how, static_cast<std::uint64_t>(seed)).text, v.text)
        << "the seed does not replay the run";
    return;
  }
  ADD_FAILURE() << "not found out in " << most_runs << " runs";
}

TEST(recovery_model, fresh_windows_are_right) {
  expect_right({.fresh = true});
}
TEST(recovery_model, windows_zeroed_after_access_was_revoked_are_right) {
  expect_right({.revoke = true});
}
TEST(recovery_model, mutant_that_zeroes_windows_and_uses_them_again_is_found) {
  expect_found({});
}
TEST(recovery_model, mutant_that_tells_generations_by_their_epochs_is_found) {
  expect_found({.epochs_before = std::uint64_t{1} << 20});
}

}  // namespace
}  // namespace ferry::protocol_test
