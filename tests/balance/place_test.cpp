// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/balance/place.hpp>

#include "balance/generated_routing.hpp"

#include <ferry/balance/metrics.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace ferry {
namespace {

using testing::HasSubstr;

result<placement> placed(placement_policy policy, expert_loads const& loads,
                         placement_options const& options, routing_trace const* trace = nullptr,
                         placement const* present = nullptr) {
  return place(policy, {.windows = {&loads, 1}, .trace = trace, .present = present}, options);
}

double busiest(placement const& where, expert_loads const& loads, int layer = 0) {
  auto const b = balance_of(where, loads).value();
  auto const first = b.rank_loads.begin() + std::ptrdiff_t{layer} * where.num_ranks;
  return *std::max_element(first, first + where.num_ranks);
}

/// One layer of each kind of load that a router, or nobody's router, may make.
struct kind {
  char const* name;
  std::function<double(int, test::random_source&)> load;
};
std::vector<kind> const kinds = {
    {"zipf", [](int e, auto&) { return 1e6 / std::pow(e + 1, 1.0); }},
    {"flat", [](int e, auto&) { return 1e5 / std::pow(e + 1, 0.3); }},
    {"uniform", [](int, auto& r) { return r.uniform(); }},
    {"lognormal", [](int, auto& r) { return std::exp(1.2 * r.normal()); }},
    {"pareto", [](int, auto& r) { return std::pow(1 - r.uniform(), -0.8); }},
    {"equal", [](int, auto&) { return 3.0; }},
    {"small", [](int, auto& r) { return static_cast<double>(r.below(5)); }},
    {"one_huge", [](int e, auto& r) { return e == 1 ? 1e9 : r.uniform(); }},
    {"only_one", [](int e, auto&) { return e == 0 ? 1.0 : 0.0; }},
    {"mostly_none",
     [](int e, auto& r) { return r.below(8) == 0 || e == 0 ? 1.0 + r.below(99) : 0; }},
};

expert_loads loads_of_kind(kind const& k, int experts, test::random_source& random) {
  expert_loads loads{1, experts, {}};
  for (int e = 0; e < experts; ++e) loads.values.push_back(k.load(e, random));
  random.shuffle(loads.values);
  return loads;
}

TEST(place, every_policy_keeps_the_rules_on_any_sizes_and_loads) {
  test::random_source random(1);
  struct sizes {
    int experts, ranks, redundant;
  };
  for (auto s : {sizes{256, 8, 0},
                 {256, 8, 32},
                 {33, 5, 0},
                 {33, 5, 7},
                 {7, 7, 0},
                 {5, 8, 0},
                 {5, 8, 6},
                 {1, 1, 0},
                 {1, 4, 3},
                 {16, 1, 0},
                 {3, 2, 3},
                 {100, 7, 41},
                 {64, 16, 0}})
    for (auto const& k : kinds) {
      SCOPED_TRACE(testing::Message()
                   << k.name << ' ' << s.experts << ' ' << s.ranks << ' ' << s.redundant);
      auto const loads = loads_of_kind(k, s.experts, random);
      routing_trace trace{60, 1, 1, {}};
      for (int t = 0; t < 60; ++t) trace.experts.push_back(random.below(s.experts));
      placement_options const o{
          .num_ranks = s.ranks, .num_nodes = std::min(2, s.ranks), .redundant = s.redundant};
      for (auto policy :
           {placement_policy::permute, placement_policy::replicate, placement_policy::local}) {
        if (policy == placement_policy::permute && s.redundant > 0) continue;
        auto const where = placed(policy, loads, o, &trace).value();
        ASSERT_TRUE(validate(where)) << to_string(policy);
        EXPECT_EQ(where.num_slots, s.experts + s.redundant);
        EXPECT_EQ(where, placed(policy, loads, o, &trace).value()) << "not the same twice";
      }
    }
}

TEST(place, permute_reaches_the_bound_on_power_laws) {
  test::random_source random(2);
  for (int i = 0; i < 120; ++i) {
    double const exponent = 0.1 + 1.5 * random.uniform();
    expert_loads const loads{1, 256, test::power_law(256, exponent, random)};
    auto const where = placed(placement_policy::permute, loads, {.num_ranks = 8}).value();
    EXPECT_LE(busiest(where, loads), 1.0005 * busiest_rank_bound(loads.layer(0), 8)) << exponent;
  }
}

TEST(place, permute_is_never_above_eplb_whatever_the_loads) {
  test::random_source random(3);
  for (int experts : {256, 64, 32})
    for (int ranks : {2, 8, 16, 32})
      for (auto const& k : kinds) {
        auto const loads = loads_of_kind(k, experts, random);
        placement_options const o{.num_ranks = ranks};
        double const ours = busiest(placed(placement_policy::permute, loads, o).value(), loads);
        double const theirs = busiest(placed(placement_policy::eplb, loads, o).value(), loads);
        EXPECT_LE(ours, theirs * (1 + 1e-12)) << k.name << ' ' << experts << ' ' << ranks;
      }
}

TEST(place, permute_leaves_loads_that_are_level_where_they_are) {
  expert_loads const loads{2, 8, {1, 2, 2, 1, 1, 2, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0}};
  auto const where = placed(placement_policy::permute, loads, {.num_ranks = 4}).value();
  EXPECT_EQ(where, contiguous_placement(2, 8, 4).value());
}

TEST(place, the_bound_is_the_mean_or_the_hottest_with_the_coldest) {
  std::vector<double> const loads = {1, 9, 2, 3};
  EXPECT_EQ(busiest_rank_bound(loads, 2), 10);  // 9 and 1
  EXPECT_EQ(busiest_rank_bound(loads, 4), 9);
  EXPECT_EQ(busiest_rank_bound(loads, 8), 9);
  EXPECT_EQ(busiest_rank_bound(loads, 1), 15);
  std::vector<double> const level = {4, 4, 4, 3};
  EXPECT_EQ(busiest_rank_bound(level, 2), 7.5);
}

TEST(place, replicas_take_the_load_off_a_hot_expert) {
  expert_loads const loads{1, 8, {70, 1, 1, 1, 1, 2, 2, 2}};
  auto const alone = placed(placement_policy::replicate, loads, {.num_ranks = 4}).value();
  EXPECT_GE(busiest(alone, loads), 70);
  auto const where =
      placed(placement_policy::replicate, loads, {.num_ranks = 4, .redundant = 4}).value();
  EXPECT_LE(busiest(where, loads), 24);  // 80 / 4, and 17.5 of the hottest at least
}

TEST(place, hot_experts_lie_everywhere_where_that_is_asked_for) {
  test::random_source random(4);
  expert_loads const loads{1, 32, test::power_law(32, 1.0, random)};
  auto const where =
      placed(placement_policy::replicate, loads, {.num_ranks = 8, .redundant = 16, .everywhere = 2})
          .value();
  ASSERT_TRUE(validate(where));
  std::vector<int> order(32);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    return loads.values[static_cast<std::size_t>(a)] > loads.values[static_cast<std::size_t>(b)];
  });
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(
        std::count(where.experts.begin(), where.experts.end(), order[static_cast<std::size_t>(i)]),
        8);
  EXPECT_THAT(
      placed(placement_policy::replicate, loads, {.num_ranks = 8, .redundant = 16, .everywhere = 3})
          .error()
          .message,
      HasSubstr("3 experts on every rank take 21 replicas"));
}

TEST(place, replicas_spread_over_nodes) {
  test::random_source random(5);
  expert_loads const loads{1, 64, test::power_law(64, 0.9, random)};
  placement_options const o{.num_ranks = 8, .num_nodes = 4, .redundant = 16};
  auto const where = placed(placement_policy::replicate, loads, o).value();
  std::vector<std::vector<int>> nodes_of(64);
  for (int s = 0; s < where.num_slots; ++s)
    nodes_of[static_cast<std::size_t>(where.experts[static_cast<std::size_t>(s)])].push_back(
        where.node_of(where.rank_of(s)));
  for (auto& nodes : nodes_of) {
    auto const copies = nodes.size();
    std::sort(nodes.begin(), nodes.end());
    auto const distinct =
        static_cast<std::size_t>(std::unique(nodes.begin(), nodes.end()) - nodes.begin());
    EXPECT_EQ(distinct, std::min<std::size_t>(copies, 4));
  }
  EXPECT_LE(balance_of(where, loads).value().worst, 1.01);
}

TEST(place, hierarchical_keeps_groups_on_one_node) {
  test::random_source random(6);
  expert_loads const loads{1, 64, test::power_law(64, 0.7, random)};
  placement_options const o{.num_ranks = 8, .num_nodes = 2, .num_groups = 8, .redundant = 16};
  auto const where = placed(placement_policy::hierarchical, loads, o).value();
  ASSERT_TRUE(validate(where));
  std::vector<int> node_of_group(8, -1);
  for (int s = 0; s < where.num_slots; ++s) {
    auto& node =
        node_of_group[static_cast<std::size_t>(where.experts[static_cast<std::size_t>(s)] / 8)];
    int const mine = where.node_of(where.rank_of(s));
    EXPECT_TRUE(node == -1 || node == mine);
    node = mine;
  }
  auto const theirs = placed(placement_policy::eplb, loads, o).value();
  EXPECT_LE(busiest(where, loads), busiest(theirs, loads));
}

TEST(place, incremental_moves_little_and_stops_at_its_target) {
  test::random_source random(7);
  expert_loads const loads{1, 256, test::power_law(256, 0.8, random)};
  auto const present = contiguous_placement(1, 256, 8).value();
  placement_options o{.num_ranks = 8, .most_over_mean = 1.05};
  auto const next = placed(placement_policy::incremental, loads, o, nullptr, &present).value();
  ASSERT_TRUE(validate(next));
  EXPECT_GT(balance_of(present, loads).value().worst, 1.2);
  EXPECT_LE(balance_of(next, loads).value().worst, 1.05 + 1e-9);
  auto const fresh = placed(placement_policy::permute, loads, o).value();
  EXPECT_LT(4 * moved_experts(present, next).value(), moved_experts(present, fresh).value());
  // Good enough already: nothing moves.
  EXPECT_EQ(placed(placement_policy::incremental, loads, o, nullptr, &next).value(), next);
}

TEST(place, incremental_keeps_to_its_cap_and_its_hysteresis) {
  test::random_source random(8);
  expert_loads const loads{1, 256, test::power_law(256, 0.8, random)};
  auto const present = contiguous_placement(1, 256, 8).value();
  placement_options o{.num_ranks = 8, .expert_bytes = 10, .most_moved_bytes = 45};
  auto const next = placed(placement_policy::incremental, loads, o, nullptr, &present).value();
  EXPECT_GT(moved_experts(present, next).value(), 0);
  EXPECT_LE(moved_experts(present, next).value(), 4);
  double const gain =
      balance_of(present, loads).value().worst - balance_of(next, loads).value().worst;
  o.min_gain = gain * 1.001;
  EXPECT_EQ(placed(placement_policy::incremental, loads, o, nullptr, &present).value(), present);
  o.min_gain = gain * 0.999;
  EXPECT_EQ(placed(placement_policy::incremental, loads, o, nullptr, &present).value(), next);
}

TEST(place, incremental_gives_replicas_to_other_experts) {
  // Expert 0 was hot and has a replica on both ranks; now 3 is.
  placement const present{1, 5, 2, 1, 6, {0, 1, 2, 0, 3, 4}};
  expert_loads const loads{1, 5, {2, 1, 1, 80, 2}};
  auto const next = placed(placement_policy::incremental, loads, {.num_ranks = 2, .redundant = 1},
                           nullptr, &present)
                        .value();
  ASSERT_TRUE(validate(next));
  EXPECT_EQ(std::count(next.experts.begin(), next.experts.end(), 3), 2);
  EXPECT_LE(moved_experts(present, next).value(), 2);
}

TEST(place, several_windows_count_alike) {
  // In the long window expert 0 is hot, in the short one expert 1: both must not share a rank.
  std::vector<expert_loads> const windows = {{1, 4, {9000, 0, 500, 500}}, {1, 4, {0, 9, 0, 1}}};
  auto const where =
      place(placement_policy::permute, {.windows = windows}, {.num_ranks = 2}).value();
  auto const rank_of = [&](int expert) {
    auto const at = std::find(where.experts.begin(), where.experts.end(), expert);
    return where.rank_of(static_cast<int>(at - where.experts.begin()));
  };
  EXPECT_NE(rank_of(0), rank_of(1));
}

TEST(place, refuses_bad_input_and_says_why) {
  expert_loads const loads{1, 8, {1, 2, 3, 4, 5, 6, 7, 8}};
  auto const message = [&](placement_policy policy, placement_options const& o,
                           routing_trace const* trace = nullptr,
                           placement const* present = nullptr) {
    auto const where = placed(policy, loads, o, trace, present);
    return where ? std::string("placed") : where.error().message;
  };
  using enum placement_policy;
  EXPECT_THAT(message(permute, {.num_ranks = 0}), HasSubstr("0 ranks"));
  EXPECT_THAT(message(permute, {.num_ranks = 4, .num_nodes = 5}), HasSubstr("5 nodes of 4 ranks"));
  EXPECT_THAT(message(permute, {.num_ranks = 4, .num_groups = 0}), HasSubstr("0 groups"));
  EXPECT_THAT(message(permute, {.num_ranks = 4, .redundant = 1}), HasSubstr("makes no replicas"));
  EXPECT_THAT(message(replicate, {.num_ranks = 4, .redundant = 25}),
              HasSubstr("25 redundant replicas; 0 to 24"));
  EXPECT_THAT(message(replicate, {.num_ranks = 4, .redundant = -1}), HasSubstr("-1 redundant"));
  EXPECT_THAT(message(eplb, {.num_ranks = 3}), HasSubstr("8 slots do not divide over 3 ranks"));
  EXPECT_THAT(message(hierarchical, {.num_ranks = 4, .num_nodes = 2, .num_groups = 3}),
              HasSubstr("3 groups"));
  EXPECT_THAT(message(local, {.num_ranks = 4}), HasSubstr("no trace"));
  routing_trace const deep{1, 2, 1, {0, 1}};
  EXPECT_THAT(message(local, {.num_ranks = 4}, &deep), HasSubstr("a trace of 2 layers"));
  EXPECT_THAT(message(incremental, {.num_ranks = 4}), HasSubstr("no present placement"));
  auto const other = contiguous_placement(1, 8, 2).value();
  EXPECT_THAT(message(incremental, {.num_ranks = 4}, nullptr, &other),
              HasSubstr("asked for are 1, 8, 8 and 4"));
  EXPECT_THAT(message(permute, {.num_ranks = 4, .most_over_mean = 0.5}),
              HasSubstr("most_over_mean is 0.5"));
  EXPECT_THAT(message(permute, {.num_ranks = 4, .min_gain = std::nan("")}),
              HasSubstr("min_gain is nan"));
  EXPECT_THAT(placed(permute, {1, 2, {1, -1}}, {}).error().message, HasSubstr("is -1"));
  EXPECT_THAT(placed(permute, {1, 2, {0, 0}}, {}).error().message, HasSubstr("empty"));
  EXPECT_THAT(place(permute, {}, {}).error().message, HasSubstr("no window"));
  auto const big =
      placed(permute, loads, {.num_ranks = 4, .expert_bytes = 100, .rank_memory_bytes = 199});
  EXPECT_EQ(big.error().code, error_code::capacity);
  EXPECT_TRUE(
      placed(permute, loads, {.num_ranks = 4, .expert_bytes = 100, .rank_memory_bytes = 200}));
}

TEST(place, policies_have_names) {
  for (auto policy :
       {placement_policy::contiguous, placement_policy::eplb, placement_policy::permute,
        placement_policy::local, placement_policy::replicate, placement_policy::hierarchical,
        placement_policy::incremental})
    EXPECT_EQ(placement_policy_of(to_string(policy)), policy);
  EXPECT_FALSE(placement_policy_of("best"));
}

}  // namespace
}  // namespace ferry
