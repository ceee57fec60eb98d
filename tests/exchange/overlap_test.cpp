// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/overlap.hpp>

#include "exchange/overlapped_steps.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <stdexcept>

namespace {

using namespace ferry;
using namespace ferry::oracle;
using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using enum stage_kind;
using enum overlap_driver;

group alone() {
  return join(threads(1).rank(0)).value();
}

/// Stages that only write down that they were put.
struct noted_stages {
  std::mutex guard;
  std::vector<std::string> log;
  std::vector<stage_list> lists;

  stage note(int microbatch, char const* name, stage_kind kind, bool yields = true) {
    return {name, kind,
            [this, microbatch, name](queue&) -> result<void> {
              std::lock_guard const lock(guard);
              log.push_back(std::to_string(microbatch) + name);
              return {};
            },
            yields};
  }
  explicit noted_stages(int microbatches) {
    for (int i = 0; i < microbatches; ++i)
      lists.push_back({note(i, "a", compute, false), note(i, "s", communication),
                       note(i, "r", communication, false), note(i, "e", compute)});
  }
};

class every_driver : public testing::TestWithParam<overlap_driver> {};
INSTANTIATE_TEST_SUITE_P(by, every_driver, testing::Values(interleaved, handed_over, concurrent),
                         [](auto const& which) {
                           return which.param == interleaved   ? std::string("interleaving")
                                  : which.param == handed_over ? std::string("handing_over")
                                                               : std::string("concurrent_threads");
                         });

TEST(overlap, puts_stages_in_the_order_of_turns_by_either_driver) {
  for (overlap_driver driver : {interleaved, handed_over}) {
    noted_stages n(2);
    overlap both = overlap::make(alone(), queue(), queue(), {.driver = driver}).value();
    both.run(n.lists).value();
    EXPECT_THAT(n.log, ElementsAre("0a", "0s", "1a", "1s", "0r", "0e", "1r", "1e"));
    both.run(n.lists).value();
    EXPECT_EQ(n.log.size(), 16U);
  }
}

TEST_P(every_driver, keeps_the_planned_order_of_communication) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    noted_stages n(3);
    overlap both =
        overlap::make(alone(), queue(), queue(),
                      {.microbatches = 3, .driver = GetParam(), .turns = turn_order::seeded(seed)})
            .value();
    both.run(n.lists).value();
    std::vector<std::string> put;
    for (std::string const& call : n.log)
      if (call[1] == 's' || call[1] == 'r') put.push_back(std::string{call[0], '.', call[1]});
    EXPECT_EQ(put, both.planned_order(n.lists)) << "seed " << seed;
  }
}

TEST_P(every_driver, turns_an_exception_of_one_microbatch_into_an_error_and_wakes_the_other) {
  noted_stages n(2);
  n.lists[1][2].put = [](queue&) -> result<void> { throw std::runtime_error("no such luck"); };
  overlap both =
      overlap::make(alone(), queue(), queue(), {.driver = GetParam(), .timeout = 20s}).value();
  auto const start = std::chrono::steady_clock::now();
  result<void> const r = both.run(n.lists);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, error_code::invalid_state);
  EXPECT_EQ(r.error().message, "stage r of microbatch 1 threw: no such luck");
  EXPECT_LT(std::chrono::steady_clock::now() - start, 10s);
  // The driver is as good as new.
  noted_stages again(2);
  both.run(again.lists).value();
  EXPECT_EQ(again.log.size(), 8U);
}

TEST_P(every_driver, names_the_stage_of_an_error) {
  noted_stages n(2);
  n.lists[0][3].put = [](queue&) { return result<void>{error{error_code::capacity, "full"}}; };
  overlap both = overlap::make(alone(), queue(), queue(), {.driver = GetParam()}).value();
  result<void> const r = both.run(n.lists);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, error_code::capacity);
  EXPECT_EQ(r.error().message, "stage e of microbatch 0: full");
}

TEST(overlap, ends_a_wait_for_a_turn_that_does_not_come) {
  noted_stages n(2);
  n.lists[0][0].put = [](queue&) -> result<void> {
    std::this_thread::sleep_for(300ms);
    return {};
  };
  overlap both =
      overlap::make(alone(), queue(), queue(), {.driver = handed_over, .timeout = 50ms}).value();
  result<void> const r = both.run(n.lists);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, error_code::timeout);
  EXPECT_THAT(r.error().message, HasSubstr("microbatch 1 had no turn within 50 ms"));
}

TEST(overlap, lets_each_stage_wait_for_the_one_before_across_queues) {
  queue first = queue::cpu_stream().value(), second = queue::cpu_stream().value();
  std::vector<int> order;  // of one microbatch: never two at once
  auto const slowly = [&](int what) {
    return [&order, what](queue& q) {
      return q.run([&order, what]() -> result<void> {
        std::this_thread::sleep_for(3ms);
        order.push_back(what);
        return {};
      });
    };
  };
  std::vector<stage_list> lists(1);
  for (int i = 0; i < 8; ++i)
    lists[0].push_back({"x", i % 3 == 0 ? communication : compute, slowly(i), true});
  overlap one = overlap::make(alone(), first, second, {.microbatches = 1}).value();
  one.run(lists).value();
  first.wait(10s).value();
  EXPECT_THAT(order, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST(overlap, refuses_what_does_not_fit) {
  EXPECT_EQ(overlap::make(alone(), queue(), queue(), {.microbatches = 0}).error().code,
            error_code::invalid_argument);
  EXPECT_EQ(overlap::make(alone(), queue(), queue(), {.microbatches = 65}).error().code,
            error_code::invalid_argument);
  device const emulated = device::open("emulated:32").value();
  EXPECT_EQ(overlap::make(alone(), queue(), queue::on(emulated).value(), {}).error().code,
            error_code::invalid_argument);
  overlap both = overlap::make(alone(), queue(), queue(), {}).value();
  noted_stages n(3);
  EXPECT_EQ(both.run(n.lists).error().code, error_code::invalid_argument);
  EXPECT_EQ(both.agree(-1, true, {}).error().code, error_code::invalid_argument);
}

TEST(overlap, is_agreed_upon_by_all_ranks_or_does_not_happen) {
  complaints wrong;
  run_ranks(3, 20s, wrong, [&](group const& g) {
    noted_stages n(2);
    overlap both = overlap::make(g, queue(), queue(), {}).value();
    int const tokens[] = {0, 9, 3};
    int const mine = tokens[g.rank()];
    agreed_step const yes = both.agree(mine, true, n.lists).value();
    wrong.check(yes.overlapped && yes.microbatches == 2 && yes.padded == 5, "padded to 5");
    int sum = 0;
    for (int i = 0; i < 2; ++i) {
      wrong.check(yes.first_of(i, mine) == sum, "first token");
      sum += yes.tokens_of(i, mine);
      wrong.check(yes.tokens_of(i, mine) <= 5, "more than the padded size");
    }
    wrong.check(sum == mine, "every token is in one microbatch");
    wrong.check(g.rank() != 2 || yes.tokens_of(1, mine) == 0, "an empty microbatch");
    agreed_step const no = both.agree(mine, g.rank() != 1, n.lists).value();
    wrong.check(!no.overlapped && no.microbatches == 1 && no.padded == 9, "one against");
    agreed_step const none = both.agree(0, true, n.lists).value();
    wrong.check(none.padded == 0, "nobody has anything");
    result<agreed_step> inside = error{error_code::internal, ""};
    queue q;
    graph const g1 = capture(q, [&]() -> result<void> {
                       inside = both.agree(mine, true, n.lists);
                       return {};
                     }).value();
    wrong.check(!inside && inside.error().code == error_code::invalid_state, "voted in a capture");
  });
  EXPECT_TRUE(wrong.none()) << wrong.text();
}

TEST(overlap, names_the_first_call_whose_order_differs_between_ranks) {
  complaints wrong;
  run_ranks(3, 20s, wrong, [&](group const& g) {
    noted_stages n(2);
    turn_order const mine = g.rank() == 1 ? turn_order::listed({0, 0, 1, 1}) : turn_order();
    overlap both = overlap::make(g, queue(), queue(), {.turns = mine}).value();
    result<agreed_step> const r = both.agree(4, true, n.lists);
    if (r) return wrong.add("a difference was not seen");
    wrong.check(r.error().code == error_code::invalid_state &&
                    r.error().message.find("call 1 is 1.s on rank 0 and 0.r on rank 1") !=
                        std::string::npos,
                r.error().message);
    // Nothing is broken by that.
    if (g.rank() == 1) both = overlap::make(g, queue(), queue(), {}).value();
    wrong.check(both.agree(4, true, n.lists).has_value(), "it is the same now");
    // One rank has a stage less.
    if (g.rank() == 2) n.lists[1].erase(n.lists[1].begin() + 2);
    result<agreed_step> const shorter = both.agree(4, true, n.lists);
    wrong.check(
        !shorter && shorter.error().message.find("nothing more on rank 2") != std::string::npos,
        shorter ? "a missing call was not seen" : shorter.error().message);
    result<overlap> three = overlap::make(g, queue(), queue(), {.microbatches = 2 + g.rank() % 2});
    wrong.check(!three->agree(4, true, {}), "ranks with other numbers of microbatches");
  });
  EXPECT_TRUE(wrong.none()) << wrong.text();
}

TEST(overlap, runs_each_receive_hook_once_a_step) {
  world w = exact_world(2);
  dice from(5);
  std::vector<step> drawn;
  for (int i = 0; i < 8; ++i) drawn.push_back(random_step(w, from));
  complaints wrong;
  run_ranks(2, 20s, wrong, [&](group const& g) {
    exchange ep = make_exchange(g, w.options).value();
    overlapped_steps mine(w, g.rank(), ep, device(), 2);
    overlap both = overlap::make(g, queue(), queue(), {.driver = handed_over}).value();
    for (int i = 0; i < 10; ++i) {
      mine.bring(drawn, i);
      result<void> const done = both.run(mine.lists());
      if (!done) return wrong.add(done.error().message);
      mine.check(drawn, i, wrong);
    }
    wrong.check(mine.hooks_run() == 20, "hooks that ran");
    g.barrier().value();
  });
  EXPECT_TRUE(wrong.none()) << wrong.text();
}

// A step that one microbatch fails in is reported on that rank at once, and names it to the others.
TEST_P(every_driver, does_not_leave_the_others_waiting_for_ever) {
  world w = exact_world(2);
  dice from(6);
  std::vector<step> drawn = {random_step(w, from)};
  auto const full = [](rank_step const& r) { return r.tokens == 8; };
  while (!std::all_of(drawn[0].brought.begin(), drawn[0].brought.end(), full))
    drawn[0] = random_step(w, from);  // so that each rank waits for the other
  complaints wrong;
  run_ranks(2, 400ms, wrong, [&](group const& g) {
    exchange ep = make_exchange(g, w.options).value();
    overlapped_steps mine(w, g.rank(), ep, device(), 2);
    if (g.rank() == 1)
      mine.lists()[0][2].put = [](queue&) -> result<void> { throw std::runtime_error("broken"); };
    overlap both = overlap::make(g, queue(), queue(), {.driver = GetParam()}).value();
    mine.bring(drawn, 0);
    result<void> const done = both.run(mine.lists());
    if (done) return wrong.add("no error");
    if (g.rank() == 1) {
      wrong.check(done.error().message.find("threw: broken") != std::string::npos,
                  done.error().message);
      std::this_thread::sleep_for(1500ms);
    } else {
      wrong.check(done.error().message.find("rank 1") != std::string::npos, done.error().message);
    }
  });
  EXPECT_TRUE(wrong.none()) << wrong.text();
}

}  // namespace
