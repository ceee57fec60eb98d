// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// The exchange over libfabric's provider tcp on the loopback interface: ranks are processes, which
// ranks_per_node keeps from mapping each other.

#include "exchange/rank_run.hpp"
#include "multiprocess/ranks.hpp"
#include "transport/loopback_fabric.hpp"

#include <gtest/gtest.h>

namespace ferry::test {
namespace {

using namespace ferry::oracle;
using namespace std::chrono_literals;

constexpr int num_ranks = 4;

struct crossing {
  char const* name;
  int ranks_per_node;
  ferry::wire wire, home;
  dtype rows;
  int rails = 1;
  ferry::hops hops = ferry::hops::one;
};
void PrintTo(crossing const& c, std::ostream* out) {
  *out << c.name;
}

world world_of(crossing const& c) {
  dice from(20261201);
  world w;
  w.ranks = num_ranks;
  exchange_options& o = w.options;
  o.num_experts = 13;
  o.topk = 4;
  o.hidden = 136;
  o.max_tokens = 8;
  o.chunk_tokens = 4;
  o.tokens = o.expert_rows = o.output = c.rows;
  o.wire = c.wire;
  o.combine_wire = c.home;
  o.num_microbatches = 2;
  o.carrier = carrier::libfabric;
  o.fabric = loopback_fabric();
  o.rails = c.rails;
  o.hops = c.hops;
  if (c.hops == hops::two) w.ranks_per_node = c.ranks_per_node;
  w.fnuz.assign(num_ranks, false);
  for (int i = 0; i < 8; ++i) w.steps.push_back(random_step(w, from));
  return w;
}

/// One rank's steps, both slots under way at once. A rank that is to die does so in their midst.
void take_steps(world const& w, crossing const& c, int rank, std::string const& address, int steps,
                complaints& wrong, bool dies = false) {
  result<group> const ranks =
      join(tcp(address, rank, num_ranks), {.timeout = 60s, .ranks_per_node = c.ranks_per_node});
  if (!ranks) return wrong.add("join: " + ranks.error().message);
  result<exchange> ep = make_exchange(*ranks, w.options);
  if (!ep) return wrong.add("make_exchange: " + ep.error().message);
  queue q = queue::cpu(1).value();
  std::vector<rank_slot> slots;
  for (int s = 0; s < w.options.num_microbatches; ++s) slots.emplace_back(w, rank, s, *ep, wrong);
  for (int done = 0; done < steps;)
    for (rank_slot& slot : slots) {
      if (!slot.advance(q)) return;
      done += slot.idle();
      if (dies && done > steps / 2) ::raise(SIGKILL);
    }
  for (rank_slot& slot : slots)
    while (!slot.idle())
      if (!slot.advance(q)) return;
}

class exchange_over_libfabric : public ::testing::TestWithParam<crossing> {};

TEST_P(exchange_over_libfabric, brings_every_row_home) {
  if (auto const why = why_no_fabric()) GTEST_SKIP() << *why;
  crossing const& c = GetParam();
  world const w = world_of(c);
  run_report const report = run_ranks(
      num_ranks,
      [&](int rank, std::string const& address) {
        complaints wrong;
        take_steps(w, c, rank, address, 40, wrong);
        EXPECT_TRUE(wrong.none()) << wrong.text();
      },
      150s);
  EXPECT_TRUE(report.ok()) << report.describe();
}

INSTANTIATE_TEST_SUITE_P(
    tcp, exchange_over_libfabric,
    ::testing::Values(crossing{"two_nodes_of_two_f32", 2, wire::f32, wire::f32, dtype::f32},
                      crossing{"two_nodes_of_two_fp8", 2, wire::fp8_e4m3, wire::bf16, dtype::bf16},
                      crossing{"four_nodes_of_one_bf16_on_rails", 1, wire::bf16, wire::bf16,
                               dtype::bf16, 2},
                      crossing{"two_nodes_of_two_bf16_by_two_hops", 2, wire::bf16, wire::bf16,
                               dtype::bf16, 1, hops::two},
                      crossing{"two_nodes_of_two_fp8_by_two_hops_on_rails", 2, wire::fp8_e4m3,
                               wire::f32, dtype::f32, 2, hops::two}),
    [](auto const& c) { return std::string(c.param.name); });

// Also those who wait for it only through others name it.
TEST(exchange_over_libfabric_with_a_death, names_the_dead_rank_on_all_survivors) {
  if (auto const why = why_no_fabric()) GTEST_SKIP() << *why;
  constexpr int victim = 2;
  crossing const c{"", 2, wire::bf16, wire::bf16, dtype::bf16};
  world const w = world_of(c);
  run_report const report = run_ranks(
      num_ranks,
      [&](int rank, std::string const& address) {
        complaints wrong;
        bool const dies = rank == victim;
        take_steps(w, c, rank, address, dies ? 20 : 1 << 20, wrong, dies);
        std::string const said = wrong.text();
        EXPECT_NE(said.find("rank 2"), std::string::npos) << said;
        for (char const* sign : {"is not token", "column", "starts", "counts", "index", "scales"})
          EXPECT_EQ(said.find(sign), std::string::npos) << said;
      },
      150s);
  for (std::size_t r = 0; r < num_ranks; ++r) {
    if (r == victim)
      EXPECT_EQ(report.ranks[r].signal, SIGKILL);
    else
      EXPECT_TRUE(report.ranks[r].ok()) << "rank " << r << "\n" << report.ranks[r].output;
  }
}

// The carrier's reason reaches all ranks, with that for which it would have been needed.
TEST(exchange_without_libfabric, says_on_all_ranks_who_cannot_be_reached) {
  thread_ranks const meeting = threads(2);
  std::vector<std::thread> ranks;
  for (int r = 0; r < 2; ++r)
    ranks.emplace_back([&, r] {
      group const g = join(meeting.rank(r), {.ranks_per_node = 1}).value();
      exchange_options o = world_of({"", 1, wire::f32, wire::f32, dtype::f32}).options;
      o.fabric.provider = "no-such-provider";
      auto const ep = make_exchange(g, o);
      ASSERT_FALSE(ep);
      EXPECT_EQ(ep.error().code, error_code::unsupported) << ep.error().message;
      for (char const* part : {"another node (ranks_per_node)", "through libfabric"})
        EXPECT_NE(ep.error().message.find(part), std::string::npos) << ep.error().message;
      EXPECT_TRUE(g.usable()) << "nothing was begun that could break";
    });
  for (std::thread& t : ranks) t.join();
}

TEST(exchange_without_libfabric, refuses_ranks_with_different_carriers) {
  thread_ranks const meeting = threads(2);
  std::vector<std::thread> ranks;
  for (int r = 0; r < 2; ++r)
    ranks.emplace_back([&, r] {
      group const g = join(meeting.rank(r)).value();
      exchange_options o = world_of({"", 1, wire::f32, wire::f32, dtype::f32}).options;
      o.carrier = r == 0 ? carrier::libfabric : carrier::verbs;
      auto const ep = make_exchange(g, o);
      ASSERT_FALSE(ep);
      EXPECT_EQ(ep.error().code, error_code::invalid_argument) << ep.error().message;
      EXPECT_NE(ep.error().message.find("carrier"), std::string::npos) << ep.error().message;
    });
  for (std::thread& t : ranks) t.join();
}

}  // namespace
}  // namespace ferry::test
