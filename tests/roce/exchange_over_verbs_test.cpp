// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// The exchange over real verbs: ranks are processes, which ranks_per_node keeps from mapping each
// other. Needs an RDMA device, and for what is done to the wire Soft-RoCE on ports that may be
// changed, as tests/roce/vm makes them.

#include "exchange/rank_run.hpp"
#include "multiprocess/ranks.hpp"
#include "roce/wire_faults.hpp"

#include <ferry/transport/verbs.hpp>

#include <gtest/gtest.h>

#include <cstdlib>

namespace ferry::test {
namespace {

using namespace ferry::oracle;
using namespace std::chrono_literals;

constexpr int num_ranks = 4;

struct crossing {
  char const* name;
  int ranks_per_node;
  ferry::wire wire;
  ferry::wire home;
  dtype rows;
};
void PrintTo(crossing const& c, std::ostream* out) {
  *out << c.name;
}

world world_of(crossing const& c, int num_steps) {
  dice from(20260801);
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
  w.fnuz.assign(num_ranks, false);
  for (int i = 0; i < num_steps; ++i) w.steps.push_back(random_step(w, from));
  return w;
}

/// One rank's steps, two slots in turn. Returns what its calls complained of; data are compared by
/// the oracle.
void take_steps(world const& w, crossing const& c, int rank, std::string const& address, int steps,
                std::chrono::milliseconds timeout, complaints& wrong) {
  result<group> const ranks =
      join(tcp(address, rank, num_ranks), {.timeout = timeout, .ranks_per_node = c.ranks_per_node});
  if (!ranks) return wrong.add("join: " + ranks.error().message);
  exchange_options o = w.options;
  result<exchange> ep = make_exchange(*ranks, o);
  if (!ep) return wrong.add("make_exchange: " + ep.error().message);
  queue q = queue::cpu(1).value();
  std::vector<rank_slot> slots;
  for (int s = 0; s < o.num_microbatches; ++s) slots.emplace_back(w, rank, s, *ep, wrong);
  for (int done = 0; done < steps;) {
    // Both slots are under way at once.
    for (rank_slot& slot : slots) {
      if (!slot.advance(q)) return;
      done += slot.idle();
    }
  }
  for (rank_slot& slot : slots)
    while (!slot.idle())
      if (!slot.advance(q)) return;
}

void expect_right(crossing const& c, int steps, int num_worlds_steps) {
  world const w = world_of(c, num_worlds_steps);
  run_report const report = run_ranks(
      num_ranks,
      [&](int rank, std::string const& address) {
        complaints wrong;
        take_steps(w, c, rank, address, steps, 30s, wrong);
        EXPECT_TRUE(wrong.none()) << wrong.text();
      },
      150s);
  EXPECT_TRUE(report.ok()) << report.describe();
}

std::vector<crossing> crossings() {
  auto const devices = working_verbs_devices({});
  if (!devices || devices->empty()) return {};
  return {
      {"two_nodes_of_two_f32", 2, wire::f32, wire::f32, dtype::f32},
      {"two_nodes_of_two_bf16", 2, wire::bf16, wire::bf16, dtype::bf16},
      {"two_nodes_of_two_fp8", 2, wire::fp8_e4m3, wire::bf16, dtype::bf16},
      {"four_nodes_of_one_f32", 1, wire::f32, wire::f32, dtype::f32},
      {"four_nodes_of_one_bf16", 1, wire::bf16, wire::bf16, dtype::bf16},
      {"four_nodes_of_one_fp8", 1, wire::fp8_ue8m0, wire::fp8_e4m3, dtype::bf16},
  };
}

class exchange_over_verbs : public ::testing::TestWithParam<crossing> {};

TEST_P(exchange_over_verbs, brings_every_row_home_over_300_steps) {
  expect_right(GetParam(), 300, 12);
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(exchange_over_verbs);
INSTANTIATE_TEST_SUITE_P(rdma, exchange_over_verbs, ::testing::ValuesIn(crossings()),
                         [](auto const& c) { return std::string(c.param.name); });

crossing const between_nodes{"", 2, wire::bf16, wire::bf16, dtype::bf16};

struct wire_fault {
  char const* name;
  char const* netem;
};
void PrintTo(wire_fault const& f, std::ostream* out) {
  *out << f.name;
}

std::vector<wire_fault> wire_faults() {
  if (!can_disturb_wires()) return {};
  return {{"loss", "loss 1%"},
          {"delay", "delay 1ms 300us"},
          {"duplication", "duplicate 2%"},
          {"corruption", "corrupt 1%"}};
}

class exchange_over_bad_wires : public ::testing::TestWithParam<wire_fault> {};

// Lost, doubled and damaged packets are the NIC's business.
TEST_P(exchange_over_bad_wires, stays_exact) {
  disturbed_wires const bad(GetParam().netem);
  expect_right(between_nodes, 60, 8);
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(exchange_over_bad_wires);
INSTANTIATE_TEST_SUITE_P(rdma, exchange_over_bad_wires, ::testing::ValuesIn(wire_faults()),
                         [](auto const& f) { return std::string(f.param.name); });

class exchange_between_nodes : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!can_disturb_wires()) GTEST_SKIP() << "no Soft-RoCE ports that may be changed";
  }
};

// Soft-RoCE takes reordering for loss, and gives up: an error that says so, and never a wrong row.
TEST_F(exchange_between_nodes,
       ends_with_a_named_error_or_exactly_when_packets_overtake_each_other) {
  world const w = world_of(between_nodes, 8);
  disturbed_wires const bad("delay 2ms 1ms reorder 25% 50%");
  run_report const report = run_ranks(
      num_ranks,
      [&](int rank, std::string const& address) {
        complaints wrong;
        take_steps(w, between_nodes, rank, address, 20, 5s, wrong);
        std::string const said = wrong.text();
        std::printf("rank %d: %s\n", rank, said.c_str());
        for (char const* sign : {"is not token", "column", "starts", "counts", "index", "scales"})
          EXPECT_EQ(said.find(sign), std::string::npos) << said;
        // Nothing has gone over these wires by then.
        for (char const* start : {"join: ", "make_exchange: "})
          EXPECT_EQ(said.find(start), std::string::npos) << said;
        if (!wrong.none()) {
          EXPECT_NE(said.find("rank "), std::string::npos) << "nobody is named: " << said;
        }
      },
      100s);
  EXPECT_TRUE(report.ok()) << report.describe();
}

// Where there is no RDMA, all ranks hear of it at once, and why it would have been needed.
TEST(exchange_without_verbs, says_on_all_ranks_who_cannot_be_reached) {
  auto const devices = working_verbs_devices({});
  if (devices && !devices->empty()) GTEST_SKIP() << "this machine has RDMA";
  thread_ranks const meeting = threads(2);
  std::vector<std::thread> ranks;
  for (int r = 0; r < 2; ++r)
    ranks.emplace_back([&, r] {
      group const g = join(meeting.rank(r), {.ranks_per_node = 1}).value();
      auto const ep = make_exchange(g, world_of(between_nodes, 0).options);
      ASSERT_FALSE(ep);
      EXPECT_EQ(ep.error().code, error_code::unsupported) << ep.error().message;
      EXPECT_NE(ep.error().message.find("another node (ranks_per_node)"), std::string::npos)
          << ep.error().message;
      EXPECT_TRUE(g.usable()) << "nothing was begun that could break";
    });
  for (std::thread& t : ranks) t.join();
}

/// Takes steps for ever; the first error and how long the failing call took.
struct ended {
  error what{error_code::internal, "no error came"};
  std::chrono::milliseconds took{0};
};
ended step_until_an_error(int rank, std::string const& address, std::chrono::milliseconds timeout,
                          std::atomic<int>* steps) {
  group const ranks = join(tcp(address, rank, num_ranks),
                           {.timeout = 30s, .ranks_per_node = between_nodes.ranks_per_node})
                          .value();
  exchange_options o = world_of(between_nodes, 0).options;
  o.timeout = timeout;
  exchange ep = make_exchange(ranks, o).value();
  queue q = queue::cpu(1).value();
  microbatch& slot = ep.microbatch(0);
  std::vector<bf16> x(static_cast<std::size_t>(o.max_tokens * o.hidden)), y(x.size());
  std::vector<std::int32_t> ids(static_cast<std::size_t>(o.max_tokens * o.topk));
  for (std::size_t i = 0; i < ids.size(); ++i)
    ids[i] = static_cast<std::int32_t>(i) % o.num_experts;
  std::vector<bf16> made(static_cast<std::size_t>(num_ranks * o.max_tokens * o.topk * o.hidden));
  for (;;) {
    auto const start = std::chrono::steady_clock::now();
    auto const one = [&]() -> result<void> {
      auto const in = slot.dispatch(q, {.tokens = rows_of(x.data(), o.max_tokens, o.hidden),
                                        .choices = dense(ids.data(), o.max_tokens, o.topk)});
      if (!in) return in.error();
      return slot.combine(q, rows_of(made.data(), *in->end, o.hidden),
                          rows_of(y.data(), o.max_tokens, o.hidden));
    };
    result<void> const done = one();
    if (!done)
      return {done.error(), std::chrono::duration_cast<std::chrono::milliseconds>(
                                std::chrono::steady_clock::now() - start)};
    ++*steps;
  }
}

class shared_count {
 public:
  shared_count()
      : at_(new (::mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0)) std::atomic<int>(0)) {}
  ~shared_count() { ::munmap(at_, sizeof(std::atomic<int>)); }
  shared_count(shared_count const&) = delete;
  std::atomic<int>* get() const { return at_; }

 private:
  std::atomic<int>* at_;
};

void expect_survivors_name(int victim, int signal, error_code code) {
  constexpr auto deadline = 6s;
  shared_count steps;
  rank_processes ranks(num_ranks, [&](int rank, std::string const& address) {
    ended const e = step_until_an_error(rank, address, deadline, steps.get());
    std::printf("rank %d after %lld ms: %s: %s\n", rank, static_cast<long long>(e.took.count()),
                to_string(e.what.code), e.what.message.c_str());
    if (rank == victim) return;  // one that was stopped and goes on
    EXPECT_EQ(e.what.code, code) << e.what.message;
    EXPECT_NE(e.what.message.find("rank " + std::to_string(victim)), std::string::npos)
        << e.what.message;
    EXPECT_LT(e.took, deadline + 10s) << e.what.message;
  });
  auto const end = std::chrono::steady_clock::now() + 60s;
  while (*steps.get() < 20 && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(5ms);
  ranks.send_signal(victim, signal);
  if (signal == SIGSTOP) {
    std::this_thread::sleep_for(deadline + 3s);
    ranks.send_signal(victim, SIGKILL);
  }
  run_report const report = ranks.wait(40s);
  for (int r = 0; r < num_ranks; ++r) {
    rank_end const& how = report.ranks[static_cast<std::size_t>(r)];
    std::printf("%s", how.output.c_str());
    if (r == victim) continue;
    EXPECT_TRUE(how.ok()) << "rank " << r << "\n" << how.output;
  }
}

TEST_F(exchange_between_nodes, names_a_rank_that_was_killed_on_all_survivors) {
  expect_survivors_name(2, SIGKILL, error_code::unreachable);
}

// Ranks of the other node wait for each other, and ask whom those wait for.
TEST_F(exchange_between_nodes, names_a_rank_that_was_stopped_on_all_survivors) {
  expect_survivors_name(1, SIGSTOP, error_code::timeout);
}

}  // namespace
}  // namespace ferry::test
