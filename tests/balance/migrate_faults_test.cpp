// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// Ranks that are processes, one of which is killed while experts move: the others get an error, and
// what they hold is one placement, weights and all.

#include "balance/moving_rank.hpp"
#include "multiprocess/ranks.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <string>
#include <thread>

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

/// Where and when a rank is killed.
struct end {
  int rank = 1;
  std::string call;  ///< of its store
  int number = 1;    ///< of those calls
  std::chrono::microseconds later = {};
};

void end_now(end const& at) {
  if (at.later.count() == 0) ::raise(SIGKILL);
  std::thread([later = at.later] {
    std::this_thread::sleep_for(later);
    ::raise(SIGKILL);
  }).detach();
}

/// Steps and a migration until something fails. Prints how often tables have changed.
void go_on_until_an_error(group const& g, end const& at) {
  complaints wrong;
  moving_rank r(world(), g, wrong, 5, queue(), {.bytes_per_step = 700});
  if (g.rank() == at.rank)
    r.store.on_call = [&, left = at.number](std::string const& now) mutable {
      if (now == at.call && --left == 0) end_now(at);
    };
  r.moving.begin(target()).value();
  bool failed = false;
  for (int i = 0; i < 400 && !failed; ++i) {
    auto const stepped =
        r.rank.step(i % world().layers, static_cast<std::uint64_t>(i), false, wrong);
    result<bool> advanced = false;
    if (stepped) advanced = r.moving.advance();
    failed = !stepped || !advanced;
    if (failed) {
      error const e = stepped ? advanced.error() : stepped.error();
      EXPECT_EQ(e.code, error_code::unreachable) << e.message;
      EXPECT_NE(e.message.find(fmt::format("rank {}", at.rank)), std::string::npos) << e.message;
      EXPECT_FALSE(g.usable()) << "no further step";
    }
    EXPECT_TRUE(r.store.is(r.moving.present(), g.rank()))
        << "slots do not hold what the placement says";
    if (advanced && *advanced) r.rank.follow(r.moving.present());
  }
  EXPECT_TRUE(failed) << "nobody noticed";
  std::printf("changed %d times.\n", static_cast<int>(r.moving.counters().rounds));
  std::fflush(stdout);
  EXPECT_TRUE(wrong.none()) << wrong.text();
}

void kill_at(end const& at) {
  SCOPED_TRACE(testing::Message() << "rank " << at.rank << " in " << at.call << " " << at.number
                                  << ", " << at.later.count() << " us later");
  test::rank_processes processes(ranks, [&](int rank, std::string const& address) {
    auto const g = join(tcp(address, rank, ranks), {.timeout = patience}).value();
    go_on_until_an_error(g, at);
  });
  auto const report = processes.wait(3 * patience);
  std::string changed;
  for (int rank = 0; rank < ranks; ++rank) {
    auto const& ended = report.ranks[static_cast<std::size_t>(rank)];
    if (rank == at.rank) {
      EXPECT_EQ(ended.signal, SIGKILL);
      continue;
    }
    EXPECT_TRUE(ended.ok()) << report.describe();
    auto const said =
        ended.output.substr(std::min(ended.output.find("changed"), ended.output.size()));
    EXPECT_NE(said, "");
    if (!changed.empty()) {
      EXPECT_EQ(said, changed) << "survivors hold different placements";
    }
    changed = said;
  }
}

TEST(migration_faults, killed_while_it_sends) {
  kill_at({.call = "read", .number = 1});
  kill_at({.call = "read", .number = 7});
}
TEST(migration_faults, killed_while_it_lays_experts_aside) {
  kill_at({.call = "stage", .number = 1});
  kill_at({.call = "read_staged", .number = 3});
}
// The others have agreed by then: they change, all of it, and see the end in their next step.
TEST(migration_faults, killed_while_it_changes) {
  kill_at({.call = "swap", .number = 1});
}
// Rank 0 tells the others how an agreement ended: some of them may learn it, and some not.
TEST(migration_faults, killed_within_the_last_agreement) {
  for (int const later : {1, 20, 60, 150})
    kill_at(
        {.rank = 0, .call = "read_staged", .number = 6, .later = std::chrono::microseconds(later)});
}

}  // namespace
