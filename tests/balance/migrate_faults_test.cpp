// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// Ranks that are processes, one of which is killed while experts move: the others get an error, and
// what they hold is one placement, weights and all.

#include "balance/moving_rank.hpp"
#include "multiprocess/ranks.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <string>

namespace {

using namespace ferry;
using namespace ferry::oracle;

constexpr int ranks = 3;
constexpr auto patience = std::chrono::seconds(10);

placed_world const& world() {
  static placed_world const w{.ranks = ranks,
                              .experts = 9,
                              .slots = 12,
                              .layers = 3,
                              .topk = 2,
                              .rule = replica_choice::hash};
  return w;
}
placement target() {
  dice from(21);
  return random_placement(from, world().layers, world().experts, ranks, world().slots);
}

/// Steps and a migration until something fails.
void go_on_until_an_error(group const& g, std::string const& call, int number) {
  complaints wrong;
  moving_rank r(world(), g, wrong, 5, queue(), {.bytes_per_step = 700});
  if (number > 0)
    r.store.on_call = [&, left = number](std::string const& now) mutable {
      if (now == call && --left == 0) ::raise(SIGKILL);
    };
  r.moving.begin(target()).value();
  bool failed = false;
  for (int i = 0; i < 400 && !failed; ++i) {
    placement const before = r.moving.present();
    auto const stepped =
        r.rank.step(i % world().layers, static_cast<std::uint64_t>(i), false, wrong);
    result<bool> advanced = false;
    if (stepped) advanced = r.moving.advance();
    failed = !stepped || !advanced;
    if (failed) {
      error const e = stepped ? advanced.error() : stepped.error();
      EXPECT_EQ(e.code, error_code::unreachable) << e.message;
      EXPECT_NE(e.message.find("rank 1"), std::string::npos) << e.message;
      EXPECT_TRUE(r.moving.present() == before) << "tables changed in a call that failed";
      EXPECT_FALSE(g.usable()) << "no further step";
    }
    EXPECT_TRUE(r.store.is(r.moving.present(), g.rank()))
        << "slots do not hold what the placement says";
    if (advanced && *advanced) r.rank.follow(r.moving.present());
  }
  EXPECT_TRUE(failed) << "nobody noticed";
  EXPECT_TRUE(wrong.none()) << wrong.text();
}

void kill_at(std::string const& call, int number) {
  test::rank_processes processes(ranks, [&](int rank, std::string const& address) {
    auto const g = join(tcp(address, rank, ranks), {.timeout = patience}).value();
    go_on_until_an_error(g, call, rank == 1 ? number : 0);
  });
  auto const report = processes.wait(3 * patience);
  for (int const survivor : {0, 2})
    EXPECT_TRUE(report.ranks[static_cast<std::size_t>(survivor)].ok())
        << call << " " << number << ": " << report.describe();
  EXPECT_EQ(report.ranks[1].signal, SIGKILL) << call << " " << number;
}

TEST(migration_faults, killed_while_it_sends) {
  kill_at("read", 1);
  kill_at("read", 7);
}
TEST(migration_faults, killed_while_it_lays_experts_aside) {
  kill_at("stage", 1);
  kill_at("read_staged", 3);
}
// The others have agreed by then: they change, all of it, and see the end in their next step.
TEST(migration_faults, killed_while_it_changes) {
  kill_at("swap", 1);
}

}  // namespace
