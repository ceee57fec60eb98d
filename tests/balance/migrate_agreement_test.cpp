// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// The last agreement of a migration ends well for some ranks and not for another, as when a rank
// dies while it tells the others: all of them change, or none.

#include "balance/moving_rank.hpp"

#include <ferry/group/bootstrap.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <thread>

namespace {

using namespace ferry;
using namespace ferry::oracle;

constexpr int ranks = 3;
constexpr int unlucky = 2;

/// A bootstrap whose all_gather ends as `ends` makes of it.
class faulty_bootstrap final : public bootstrap {
 public:
  using gathered = result<std::vector<bytes>>;
  std::unique_ptr<bootstrap> inner;
  std::shared_ptr<std::function<gathered(gathered)>> ends;

  int rank() const override { return inner->rank(); }
  int size() const override { return inner->size(); }
  gathered all_gather(std::span<std::byte const> mine, std::chrono::milliseconds timeout) override {
    auto all = inner->all_gather(mine, timeout);
    return *ends ? (*ends)(std::move(all)) : std::move(all);
  }
  presence look(int peer) override { return inner->look(peer); }
  bool shares_address_space() const override { return inner->shares_address_space(); }
  void leave() override { inner->leave(); }
};

/// Waits for another rank, not for ever.
bool comes_to(std::atomic<int>& count, int wanted) {
  auto const end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (count < wanted && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  return count >= wanted;
}

struct outcome {
  bool failed = false, broken = false, holds = false;
  std::uint64_t rounds = 0;
};

/// The end of the first round's second agreement, where the unlucky rank hears of no end. It is the
/// first to decide, or the others are.
void run(bool unlucky_first, std::array<outcome, ranks>& ended, complaints& wrong) {
  placed_world const w{.ranks = ranks, .experts = 9, .slots = 12, .layers = 1, .topk = 2};
  thread_ranks const meeting(ranks);
  std::atomic<int> decided = 0;
  std::vector<std::jthread> all;
  for (int rank = 0; rank < ranks; ++rank)
    all.emplace_back([&, rank] {
      auto const ends =
          std::make_shared<std::function<faulty_bootstrap::gathered(faulty_bootstrap::gathered)>>();
      auto const make = [&](group_options const& o) -> result<std::unique_ptr<bootstrap>> {
        auto b = std::make_unique<faulty_bootstrap>();
        FERRY_TRY(b->inner, meeting.rank(rank)(o));
        b->ends = ends;
        return std::unique_ptr<bootstrap>(std::move(b));
      };
      group const g = join(make, {.timeout = std::chrono::seconds(30)}).value();
      moving_rank r(w, g, wrong, 5, queue(), {.bytes_per_step = 5000});
      dice from(21);
      r.moving.begin(random_placement(from, 1, 9, ranks, 12)).value();
      *ends = [&, calls = 0](faulty_bootstrap::gathered got) mutable -> faulty_bootstrap::gathered {
        if (++calls != 2) return got;
        bool const waits = (rank == unlucky) != unlucky_first;
        if (waits) wrong.check(comes_to(decided, unlucky_first ? 1 : ranks - 1), "others decide");
        if (rank == unlucky) return error{error_code::unreachable, "rank 9 is gone"};
        return got;
      };
      result<bool> advanced = false;
      while (advanced && !*advanced && r.moving.running() && r.step())
        advanced = r.moving.advance();
      ++decided;
      ended[static_cast<std::size_t>(rank)] = {
          !advanced, !g.usable(), r.store.is(r.moving.present(), rank), r.moving.counters().rounds};
      // Nobody leaves while others look at the window.
      wrong.check(comes_to(decided, ranks), "all are there at the end");
    });
}

TEST(migration_agreement, a_rank_that_hears_nothing_changes_as_the_others_have) {
  complaints wrong;
  std::array<outcome, ranks> ended;
  run(false, ended, wrong);
  EXPECT_TRUE(wrong.none()) << wrong.text();
  for (int r = 0; r < ranks; ++r) {
    auto const& one = ended[static_cast<std::size_t>(r)];
    EXPECT_EQ(one.rounds, 1u) << "rank " << r;
    EXPECT_TRUE(one.holds) << "rank " << r;
    EXPECT_EQ(one.failed, r == unlucky) << "rank " << r;
    EXPECT_EQ(one.broken, r == unlucky) << "rank " << r;
  }
}

TEST(migration_agreement, nobody_changes_where_a_rank_that_hears_nothing_decides_first) {
  complaints wrong;
  std::array<outcome, ranks> ended;
  run(true, ended, wrong);
  EXPECT_TRUE(wrong.none()) << wrong.text();
  for (int r = 0; r < ranks; ++r) {
    auto const& one = ended[static_cast<std::size_t>(r)];
    EXPECT_EQ(one.rounds, 0u) << "rank " << r;
    EXPECT_TRUE(one.holds && one.failed && one.broken) << "rank " << r;
  }
}

}  // namespace
