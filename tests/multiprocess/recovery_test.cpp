// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// Ranks that are processes; some are killed or stopped, and the others go on without them.

#include "multiprocess/ranks.hpp"
#include "multiprocess/recovering_rank.hpp"

#include <ferry/ferry.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <new>
#include <random>
#include <utility>

namespace ferry::test {
namespace {

using namespace std::chrono_literals;

/// Memory that the test and its ranks share.
struct board {
  std::atomic<int> steps{0}, recovered{0};
  std::atomic<bool> go_on{false};
};
class shared_board {
 public:
  shared_board()
      : at_(new (::mmap(nullptr, sizeof(board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                        -1, 0)) board) {}
  ~shared_board() { ::munmap(at_, sizeof(board)); }
  shared_board(shared_board const&) = delete;
  board* operator->() const { return at_; }

 private:
  board* at_;
};

void until(auto const& condition) {
  auto const end = std::chrono::steady_clock::now() + 40s;
  while (!condition() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(1ms);
}

/// A rank's end, and when it comes.
struct fate {
  int rank;
  moment when;
  int step = 4;
  int signal = SIGKILL;
};

constexpr auto patience = 20s;

/// Takes steps until one fails, which must name one of these ranks.
void expect_to_hear(recovering_rank& r, error_code code, std::vector<int> const& victims) {
  result<void> done;
  while (done && r.next_step() < 100000) done = r.step();
  ASSERT_FALSE(done) << "nobody noticed";
  EXPECT_EQ(done.error().code, code) << done.error().message;
  bool named = false;
  for (int v : victims)
    named = named || done.error().message.starts_with("rank " + std::to_string(v) + " ");
  EXPECT_TRUE(named) << done.error().message;
}

void expect_exact(recovering_rank& r, int steps) {
  int const last = r.next_step() + steps;
  while (r.next_step() < last) {
    auto const done = r.step();
    ASSERT_TRUE(done) << done.error().message;
  }
  EXPECT_EQ(r.choices_counted(), r.choices_lost());
  // Whoever leaves has nothing that the others wait for.
  EXPECT_TRUE(r.ranks().barrier());
}

void expect_ends(run_report const& report, std::vector<fate> const& fates) {
  for (std::size_t i = 0; i < report.ranks.size(); ++i) {
    bool killed = false;
    for (fate const& f : fates) killed = killed || f.rank == static_cast<int>(i);
    rank_end const& end = report.ranks[i];
    if (killed)
      EXPECT_EQ(end.signal, SIGKILL) << "rank " << i << ":\n" << end.output;
    else
      EXPECT_TRUE(end.ok()) << "rank " << i << ":\n" << end.output;
  }
}

recovering_rank::watcher raise_at(std::vector<fate> const& fates, int rank) {
  return [fates, rank, met = std::make_shared<bool>(false)](moment m, int step) {
    // Whoever rebuilds has been through its first windows.
    bool const first_windows =
        (m == moment::before_new_windows || m == moment::after_new_windows) && step == 1;
    for (fate const& f : fates)
      if (f.rank == rank && f.when == m && step >= f.step && !first_windows &&
          !std::exchange(*met, true))
        ::raise(f.signal);
  };
}

// The first one of `fates` is who the others hear of.
void expect_recovery(int ranks, std::vector<fate> const& fates, reach via = reach::mapped) {
  SCOPED_TRACE(testing::Message() << ranks << " ranks, rank " << fates.front().rank
                                  << " dies at moment " << static_cast<int>(fates.front().when));
  run_report const report = run_ranks(
      ranks,
      [&](int rank, std::string const& address) {
        group const g = join(tcp(address, rank, ranks), {.timeout = patience}).value();
        recovering_rank r(g, ranks, patience, raise_at(fates, rank), via);
        r.prepare().value();
        std::vector<int> victims;
        for (fate const& f : fates) victims.push_back(f.rank);
        expect_to_hear(r, error_code::unreachable, victims);
        auto const recovered = r.recover();
        ASSERT_TRUE(recovered) << recovered.error().message;
        expect_exact(r, 30);
        EXPECT_EQ(r.ranks().size(), ranks - static_cast<int>(fates.size()));
      },
      40s);
  expect_ends(report, fates);
}

TEST(recovery, from_a_death_in_each_phase_of_a_step) {
  for (moment when :
       {moment::before_send, moment::before_receive, moment::before_return, moment::before_gather})
    expect_recovery(2 + static_cast<int>(when), {{static_cast<int>(when) % 2, when}});
}

TEST(recovery, over_a_network) {
  expect_recovery(3, {{1, moment::before_return}}, reach::network);
}

// Whatever it was doing: in the middle of a call, of a row, of a wait.
TEST(recovery, from_a_death_at_any_moment) {
  constexpr unsigned seed = 7;
  std::minstd_rand random(seed);
  for (int turn = 0; turn < 6; ++turn) {
    int const ranks = 2 + turn % 3;
    fate const f{static_cast<int>(random() % static_cast<unsigned>(ranks)), moment::before_send};
    SCOPED_TRACE(testing::Message()
                 << "seed " << seed << ", turn " << turn << ", rank " << f.rank << " of " << ranks);
    shared_board b;
    rank_processes all(ranks, [&](int rank, std::string const& address) {
      group const g = join(tcp(address, rank, ranks), {.timeout = patience}).value();
      recovering_rank r(g, ranks, patience, [&](moment, int) { ++b->steps; });
      r.prepare().value();
      expect_to_hear(r, error_code::unreachable, {f.rank});
      r.recover().value();
      EXPECT_EQ(r.ranks().size(), ranks - 1);
      expect_exact(r, 20);
    });
    until([&] { return b->steps >= 100 * ranks; });
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 5000));
    all.send_signal(f.rank, SIGKILL);
    expect_ends(all.wait(40s), {f});
  }
}

TEST(recovery, from_two_deaths_at_once) {
  expect_recovery(4, {{0, moment::before_receive}, {2, moment::before_receive}});
}

TEST(recovery, from_a_death_while_the_group_is_made_anew) {
  for (moment when : {moment::before_without, moment::before_new_windows})
    expect_recovery(4,
                    {{1, moment::before_return}, {when == moment::before_without ? 0 : 3, when}});
}

// The second one is called by its place among those who are left.
TEST(recovery, from_one_death_after_the_other) {
  std::vector<fate> const fates{{1, moment::before_return}, {3, moment::before_receive, 12}};
  run_report const report = run_ranks(
      4,
      [&](int rank, std::string const& address) {
        group const g = join(tcp(address, rank, 4), {.timeout = patience}).value();
        recovering_rank r(g, 4, patience, raise_at(fates, rank));
        r.prepare().value();
        for (fate const& f : fates) {
          int place = 0;
          while (r.ranks().joined_as(place) != f.rank) ++place;
          expect_to_hear(r, error_code::unreachable, {place});
          r.recover().value();
        }
        EXPECT_EQ(r.ranks().size(), 2);
        expect_exact(r, 30);
      },
      40s);
  expect_ends(report, fates);
}

TEST(recovery, from_a_rank_that_stops_while_the_group_is_made_anew) {
  std::vector<fate> const fates{{1, moment::before_return},
                                {3, moment::before_without, 4, SIGSTOP}};
  shared_board b;
  rank_processes all(4, [&](int rank, std::string const& address) {
    group const g = join(tcp(address, rank, 4), {.timeout = 5s}).value();
    recovering_rank r(g, 4, patience, raise_at(fates, rank));
    r.prepare().value();
    expect_to_hear(r, error_code::unreachable, {1});
    r.recover().value();
    EXPECT_EQ(r.ranks().size(), 2);
    expect_exact(r, 30);
    ++b->recovered;
  });
  until([&] { return b->recovered == 2; });
  all.send_signal(3, SIGKILL);
  expect_ends(all.wait(40s), fates);
}

/// Dies when the ranks have agreed who goes on, and have not met yet.
class dying_bootstrap final : public bootstrap {
 public:
  explicit dying_bootstrap(std::unique_ptr<bootstrap> behind) : behind_(std::move(behind)) {}
  int rank() const override { return behind_->rank(); }
  int size() const override { return behind_->size(); }
  result<std::vector<bytes>> all_gather(std::span<std::byte const> mine,
                                        std::chrono::milliseconds timeout) override {
    return behind_->all_gather(mine, timeout);
  }
  presence look(int peer) override { return behind_->look(peer); }
  bool shares_address_space() const override { return false; }
  void leave() override { behind_->leave(); }
  result<std::unique_ptr<bootstrap>> without(std::vector<int> const& lost,
                                             std::chrono::milliseconds timeout) override {
    auto const made = behind_->without(lost, timeout);
    ::raise(SIGKILL);
    return fail_;
  }

 private:
  std::unique_ptr<bootstrap> behind_;
  error fail_{error_code::internal, "it lives on"};
};

TEST(recovery, from_a_death_between_agreement_and_meeting) {
  std::vector<fate> const fates{{2, moment::before_gather}, {0, moment::before_without, 1000}};
  run_report const report = run_ranks(
      4,
      [&](int rank, std::string const& address) {
        auto how = tcp(address, rank, 4);
        if (rank == 0)
          how = [how](group_options const& o) -> result<std::unique_ptr<bootstrap>> {
            FERRY_TRY(auto made, how(o));
            return std::unique_ptr<bootstrap>(new dying_bootstrap(std::move(made)));
          };
        group const g = join(how, {.timeout = patience}).value();
        recovering_rank r(g, 4, patience, raise_at(fates, rank));
        r.prepare().value();
        expect_to_hear(r, error_code::unreachable, {2});
        auto const recovered = r.recover();
        ASSERT_TRUE(recovered) << recovered.error().message;
        expect_exact(r, 30);
        EXPECT_EQ(r.ranks().size(), 2);
      },
      40s);
  expect_ends(report, fates);
}

// It is not dead: it goes on storing into windows that nobody looks at any more, and cannot come
// back.
TEST(recovery, from_a_rank_that_stops_and_comes_back) {
  constexpr int ranks = 3;
  std::vector<fate> const fates{{1, moment::before_receive, 4, SIGSTOP}};
  shared_board b;
  rank_processes all(ranks, [&](int rank, std::string const& address) {
    {
      group const g = join(tcp(address, rank, ranks), {.timeout = patience}).value();
      recovering_rank r(g, ranks, 5s, raise_at(fates, rank));
      r.prepare().value();
      if (rank == 1) {
        result<void> done;
        while (done && r.next_step() < 200) done = r.step();
        ASSERT_FALSE(done);
        auto const late = r.recover();
        ASSERT_FALSE(late);
        EXPECT_EQ(late.error().code, error_code::unreachable) << late.error().message;
        EXPECT_NE(late.error().message.find("goes on without this rank"), std::string::npos)
            << late.error().message;
      } else {
        expect_to_hear(r, error_code::timeout, {1});
        auto const recovered = r.recover();
        ASSERT_TRUE(recovered) << recovered.error().message;
        EXPECT_EQ(r.ranks().size(), 2);
        ++b->recovered;
        expect_exact(r, 400);
        until([&] { return b->go_on.load(); });
        expect_exact(r, 10);
      }
    }
    if (rank == 1) b->go_on = true;
  });
  until([&] { return b->recovered == 2; });
  all.send_signal(1, SIGCONT);
  run_report const report = all.wait(40s);
  EXPECT_TRUE(report.ok()) << report.describe();
}

// With the rank and size that it had, and at the same address; the others come there when they
// choose to.
TEST(recovery, a_restarted_process_joins_again) {
  constexpr int ranks = 3;
  for (int victim : {0, 1}) {
    std::vector<fate> const fates{{victim, moment::before_return}};
    shared_board b;
    // The last one is the victim's next life.
    rank_processes all(ranks + 1, [&](int process, std::string const& address) {
      bool const next_life = process == ranks;
      if (next_life) until([&] { return b->recovered == ranks - 1; });
      int const rank = next_life ? victim : process;
      auto const join_all = [&] {
        return join(tcp(address, rank, ranks), {.timeout = patience}).value();
      };
      if (!next_life) {
        recovering_rank r(join_all(), ranks, patience, raise_at(fates, rank));
        r.prepare().value();
        expect_to_hear(r, error_code::unreachable, {victim});
        r.recover().value();
        expect_exact(r, 20);
        ++b->recovered;
        EXPECT_EQ(r.ranks().joined_as(r.ranks().rank()), rank);
      }
      recovering_rank whole(join_all(), ranks, patience);
      whole.prepare().value();
      expect_exact(whole, 30);
      EXPECT_EQ(whole.ranks().size(), ranks);
      EXPECT_EQ(whole.choices_lost(), 0u) << "all experts are there again";
    });
    expect_ends(all.wait(40s), fates);
  }
}

}  // namespace
}  // namespace ferry::test
