// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// Every order in which microbatches can hand over to each other gives exact results, by each
// driver.

#include "exchange/overlapped_steps.hpp"
#include "exchange/random_world.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>

namespace {

using namespace ferry;
using namespace ferry::oracle;
using namespace std::chrono_literals;

enum class queues { one_plain, two_plain, two_streams };
struct manner {
  overlap_driver driver;
  queues on;
};
std::string name_of(manner const& m) {
  static constexpr char const* drivers[] = {"interleaved", "handed_over", "concurrent"};
  static constexpr char const* kinds[] = {"one_plain_queue", "two_plain_queues", "two_streams"};
  return std::string(drivers[static_cast<int>(m.driver)]) + "_on_" + kinds[static_cast<int>(m.on)];
}
void PrintTo(manner const& m, std::ostream* to) {
  *to << name_of(m);
}

result<overlap> make_overlap(group const& ranks, manner const& m, int microbatches,
                             turn_order turns) {
  queue compute = m.on == queues::two_streams ? queue::cpu_stream().value() : queue();
  queue other = m.on == queues::one_plain   ? compute
                : m.on == queues::two_plain ? queue()
                                            : queue::cpu_stream().value();
  return overlap::make(
      ranks, compute, other,
      {.microbatches = microbatches, .driver = m.driver, .turns = std::move(turns)});
}

class hand_over_order : public testing::TestWithParam<manner> {
 protected:
  static constexpr int ranks = 3;
  world w = exact_world(ranks);
  std::vector<step> drawn;

  // Each order runs `steps` steps on all ranks.
  void run(std::vector<turn_order> const& orders, std::vector<std::string> const& names,
           int microbatches, int steps, bool captured) {
    w.options.num_microbatches = microbatches;
    dice from(17);
    for (int i = 0; i < 40; ++i) drawn.push_back(random_step(w, from));
    complaints wrong;
    run_ranks(ranks, 20s, wrong, [&](group const& group) {
      result<exchange> ep = make_exchange(group, w.options);
      if (!ep) return wrong.add(ep.error().message);
      overlapped_steps mine(w, group.rank(), *ep, device(), microbatches);
      int number = 0;
      for (std::size_t i = 0; i < orders.size() && wrong.none(); ++i) {
        overlap both = make_overlap(group, GetParam(), microbatches, orders[i]).value();
        result<void> done = run_order(both, mine, steps, number, captured, wrong);
        if (!done) return wrong.add(names[i] + ": " + done.error().message);
        wrong.check(wrong.none(), names[i]);
      }
      group.barrier().value();
    });
    EXPECT_TRUE(wrong.none()) << wrong.text();
  }

  result<void> run_order(overlap& both, overlapped_steps& mine, int steps, int& number,
                         bool captured, complaints& wrong) {
    std::optional<graph> g;
    if (captured) {
      result<graph> made = capture(both.compute(), [&] { return both.run(mine.lists()); });
      if (!made) return made.error();
      g = *made;
    }
    for (int i = 0; i < steps; ++i, ++number) {
      mine.bring(drawn, number);
      result<void> done = g ? g->launch(both.compute()) : both.run(mine.lists());
      if (done) done = both.compute().wait(20s);
      if (!done) return done;
      mine.check(drawn, number, wrong);
    }
    return {};
  }
};

using enum overlap_driver;
INSTANTIATE_TEST_SUITE_P(by, hand_over_order,
                         testing::Values(manner{interleaved, queues::one_plain},
                                         manner{interleaved, queues::two_plain},
                                         manner{interleaved, queues::two_streams},
                                         manner{handed_over, queues::one_plain},
                                         manner{handed_over, queues::two_streams},
                                         manner{concurrent, queues::two_plain},
                                         manner{concurrent, queues::two_streams}),
                         [](auto const& which) { return name_of(which.param); });

// Four turns each: 70 orders.
TEST_P(hand_over_order, of_two_microbatches_is_exact_in_all_cases) {
  std::vector<int> turns = {0, 0, 0, 0, 1, 1, 1, 1};
  std::vector<turn_order> orders;
  std::vector<std::string> names;
  do {
    orders.push_back(turn_order::listed(turns));
    names.emplace_back("turns ");
    for (int const t : turns) names.back() += std::to_string(t);
  } while (std::next_permutation(turns.begin(), turns.end()));
  ASSERT_EQ(orders.size(), 70U);
  run(orders, names, 2, 2, false);
}

// FERRY_TEST_SEED=n runs that order alone.
TEST_P(hand_over_order, of_three_slots_is_exact_for_all_seeds) {
  std::vector<turn_order> orders;
  std::vector<std::string> names;
  char const* const chosen = std::getenv("FERRY_TEST_SEED");
  std::uint64_t const first = chosen ? std::strtoull(chosen, nullptr, 10) : 0;
  std::uint64_t const end = chosen ? first + 1 : static_cast<std::uint64_t>(effort(150));
  for (std::uint64_t seed = first; seed < end; ++seed) {
    orders.push_back(turn_order::seeded(seed));
    names.push_back("FERRY_TEST_SEED=" + std::to_string(seed));
  }
  run(orders, names, 3, 1, false);
}

TEST_P(hand_over_order, can_be_captured_and_replayed) {
  std::vector<turn_order> orders = {turn_order()};
  std::vector<std::string> names = {"in turn"};
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    orders.push_back(turn_order::seeded(seed));
    names.push_back("seed " + std::to_string(seed));
  }
  run(orders, names, 2, 30, true);
}

}  // namespace
