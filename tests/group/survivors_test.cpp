// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// Who goes on, as ranks agree on it over a network that a seed plays: words come late, ranks die
// between any two of them, and others are only thought to be dead. A mutant wraps what a rank knows
// or does; each must be found out, or these runs would not show that ferry does it right.

#include "group/survivors.hpp"
#include "protocol/chance.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <string>

namespace ferry {
namespace {

using protocol_test::chance;
using set = std::vector<int>;

/// What a mutant changes.
struct habits {
  virtual ~habits() = default;
  /// When a rank goes on.
  virtual bool goes_on(survivors const& who) const { return who.agreed(); }
  /// Whether a peer's death is certain to a rank, which suspects it or not.
  virtual bool is_certain(bool dead, bool /*suspected*/) const { return dead; }
};

class world {
 public:
  world(habits const& h, std::uint64_t seed)
      : habits_(h), random_(seed), suspects_(seed % 2 == 0), size_(2 + random_.below(5)) {
    for (int r = 0; r < size_; ++r) ranks_.push_back({survivors(r, size_), {}, {}});
    lines_.resize(static_cast<std::size_t>(size_ * size_));
    calling_.resize(static_cast<std::size_t>(size_));
  }

  /// Returns  what went wrong, if anything
  std::string play() {
    int const turns = 60 + random_.below(200);
    for (int t = 0; t < turns; ++t) {
      move();
      if (auto wrong = check(); !wrong.empty()) return wrong;
    }
    return "";
  }
  /// From now on nobody dies; if nobody was suspected either, all who live come together.
  std::string come_to_rest() {
    if (suspects_) return "";
    for (int round = 0; round < 4 * size_; ++round)
      for (int r = 0; r < size_; ++r) {
        if (rank(r).dead) continue;
        for (int from = 0; from < size_; ++from)
          while (deliver(from, r)) {
          }
        for (int peer = 0; peer < size_; ++peer)
          if (rank(peer).dead) rank(r).who.bury(peer);
        call(r, {});
      }
    set living;
    for (int r = 0; r < size_; ++r)
      if (!rank(r).dead) living.push_back(r);
    for (int const r : living)
      if (rank(r).members != living) return "ranks that live have not come together";
    return "";
  }

 private:
  struct node {
    survivors who;
    set members;  ///< with whom it goes on
    set suspects;
    bool went_on = false, dead = false;
  };
  node& rank(int r) { return ranks_[static_cast<std::size_t>(r)]; }
  std::deque<survivors_word>& line(int from, int to) {
    return lines_[static_cast<std::size_t>(from * size_ + to)];
  }

  void move() {
    int const r = random_.below(size_);
    if (rank(r).dead) return;
    switch (random_.below(8)) {
      case 0:
        if (random_.once_in(12)) rank(r).dead = true;
        return;
      case 1:
        // A death is known when all that the rank said has come.
        for (int peer = 0; peer < size_; ++peer) {
          bool const thought = std::ranges::find(rank(r).suspects, peer) != rank(r).suspects.end();
          if (peer != r && line(peer, r).empty() && habits_.is_certain(rank(peer).dead, thought))
            rank(r).who.bury(peer);
        }
        return;
      case 2:
        if (int const peer = random_.below(size_); suspects_ && peer != r && random_.once_in(3)) {
          rank(r).suspects.push_back(peer);
          return call(r, {peer});
        }
        return call(r, {});
      default: deliver(random_.below(size_), r);
    }
    step(r);
  }
  bool deliver(int from, int to) {
    if (line(from, to).empty()) return false;
    rank(to).who.hear(from, line(from, to).front());
    line(from, to).pop_front();
    return true;
  }
  void call(int r, set const& lost) {
    rank(r).who.begin(lost);
    calling_[static_cast<std::size_t>(r)] = true;
    step(r);
  }
  // One turn of `agree_on_survivors`.
  void step(int r) {
    if (!calling_[static_cast<std::size_t>(r)]) return;
    survivors& who = rank(r).who;
    who.settle();
    if (who.said_by(r) != who.word()) {
      for (int to = 0; to < size_; ++to)
        if (to != r) line(r, to).push_back(who.word());
      who.hear(r, who.word());
    }
    if (who.left_out_by() >= 0 || !habits_.goes_on(who)) return;
    who.go_on();
    rank(r).members = who.members();
    rank(r).went_on = true;
    calling_[static_cast<std::size_t>(r)] = false;
  }

  std::string check() {
    for (int a = 0; a < size_; ++a)
      for (int b = 0; b < a; ++b) {
        if (!rank(a).went_on || !rank(b).went_on || rank(a).dead || rank(b).dead ||
            rank(a).members == rank(b).members)
          continue;
        auto const has = [&](int who, int whom) {
          return std::ranges::find(rank(who).members, whom) != rank(who).members.end();
        };
        if (has(a, b) && has(b, a) && rank(a).who.current() == rank(b).who.current())
          return "two ranks of one rebuild have different groups";
        if (goes(a) && goes(b)) return "two groups go on";
      }
    return "";
  }
  // Whether all of its group who live go on in it.
  bool goes(int r) {
    return std::ranges::all_of(rank(r).members, [&](int peer) {
      return rank(peer).dead || rank(peer).members == rank(r).members;
    });
  }

  habits const& habits_;
  chance random_;
  bool suspects_;
  int size_;
  std::vector<node> ranks_;
  std::vector<bool> calling_;
  std::vector<std::deque<survivors_word>> lines_;
};

constexpr std::uint64_t runs = 1500;

std::string first_wrong(habits const& h) {
  for (std::uint64_t seed = 1; seed <= runs; ++seed) {
    world w(h, seed);
    std::string wrong = w.play();
    if (wrong.empty()) wrong = w.come_to_rest();
    if (!wrong.empty()) return "seed " + std::to_string(seed) + ": " + wrong;
  }
  return "";
}

TEST(survivors, never_go_on_in_two_groups_and_come_together) {
  EXPECT_EQ(first_wrong(habits()), "");
}

struct suspicion_is_certain : habits {
  bool is_certain(bool dead, bool suspected) const override { return dead || suspected; }
};
TEST(survivors, mutant_that_takes_a_late_rank_for_a_dead_one_is_found) {
  EXPECT_NE(first_wrong(suspicion_is_certain()).find("two groups go on"), std::string::npos);
}
struct any_number_is_enough : habits {
  bool goes_on(survivors const& who) const override { return who.silent().empty(); }
};
TEST(survivors, mutant_that_goes_on_with_any_number_is_found) {
  EXPECT_NE(first_wrong(any_number_is_enough()).find("two groups go on"), std::string::npos);
}
struct does_not_wait_for_all : habits {
  bool goes_on(survivors const& who) const override { return who.enough(); }
};
TEST(survivors, mutant_that_does_not_wait_for_all_words_is_found) {
  EXPECT_NE(first_wrong(does_not_wait_for_all()), "");
}

TEST(survivors, of_two_halves_the_one_with_rank_0_goes_on) {
  for (int me : {0, 1}) {
    survivors who(me, 2);
    who.begin({1 - me});
    who.settle();
    who.hear(me, who.word());
    EXPECT_EQ(who.agreed(), me == 0);
    EXPECT_EQ(who.doubtful(), std::vector{1 - me});
    who.bury(1 - me);
    EXPECT_TRUE(who.agreed()) << "the other one has ended";
  }
}

TEST(survivors, a_rank_that_has_come_is_not_lost) {
  survivors who(0, 3);
  who.hear(1, {1, {false, false, true}});
  who.begin({1});
  who.settle();
  EXPECT_EQ(who.members(), (std::vector{0, 1}));
  survivors late(0, 4);
  late.hear(1, {1, std::vector<bool>(4)});
  late.begin({2});
  late.begin({1});
  late.settle();
  EXPECT_EQ(late.members(), (std::vector{0, 1, 3})) << "both are at the first rebuild";
  late.bury(3);
  late.settle();
  late.begin({1});
  EXPECT_EQ(late.members(), std::vector{0}) << "by now it has not followed";
}

}  // namespace
}  // namespace ferry
