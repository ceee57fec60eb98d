// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// Ranks that are processes, and one of them dies, stops or is late. Whoever waits must hear of it,
// and of the right one.

#include "contract/carried_exchange.hpp"
#include "multiprocess/machine_state.hpp"
#include "multiprocess/ranks.hpp"

#include <ferry/ferry.hpp>

#include <gtest/gtest.h>

#include <grp.h>
#include <sys/resource.h>

#include <atomic>
#include <random>

namespace ferry::test {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

/// How much longer than its deadline a rank may take to say so: on a loaded machine it may not even
/// run at that time. What it shows is that nobody waits for ever.
constexpr auto grace = 15s;

/// Memory that the test and its ranks share.
struct board {
  std::atomic<int> steps{0};     ///< begun by the ranks, all together
  std::atomic<int> finished{0};  ///< ranks that are through with their checks
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
  auto const end = clock::now() + 30s;
  while (!condition() && clock::now() < end) std::this_thread::sleep_for(1ms);
}

enum class user { as_started, nobody };
void become(user u) {
  if (u == user::as_started) return;
  uid_t const id = 65534;
  if (::setgroups(0, nullptr) != 0 || ::setresgid(id, id, id) != 0 || ::setresuid(id, id, id) != 0)
    throw std::system_error(errno, std::generic_category(), "cannot become another user");
}

/// Where in a step a rank comes to its end.
enum class phase {
  before_send,
  before_receive,
  before_return,
  before_gather,
  never,
};

struct crowd {
  int ranks = 3;
  int victim = 1;
  phase when = phase::never;
  int signal = SIGKILL;
  std::chrono::milliseconds deadline{10000};
  user as = user::as_started;
  int blocks = 1;
};

/// One rank's steps: every token of rank r goes to two experts, of different ranks, and row and sum
/// are checked.
class member {
 public:
  static constexpr int hidden = 64, topk = 2, tokens = 5;

  member(crowd const& c, int rank, std::string const& address)
      : crowd_(c),
        group_(join(tcp(address, rank, c.ranks), {.timeout = c.deadline}).value()),
        exchange_(make_exchange(group_, options(c)).value()),
        queue_(queue::cpu(c.blocks).value()) {}

  group const& ranks() const { return group_; }

  /// The victim raises its signal in the phase named, of step 4.
  result<void> step(int n) {
    at(n, phase::before_send);
    auto const count = static_cast<std::size_t>(tokens);
    std::vector<float> x(count * hidden), y(x.size());
    std::vector<std::int32_t> ids(count * topk);
    for (int t = 0; t < tokens; ++t) {
      for (int i = 0; i < hidden; ++i) x[static_cast<std::size_t>(t * hidden + i)] = value(n, t);
      ids[static_cast<std::size_t>(t * topk)] = (n + t) % experts();
      ids[static_cast<std::size_t>(t * topk + 1)] = (n + t + 2) % experts();
    }
    microbatch& mb = exchange_.microbatch(n % 2);
    FERRY_CHECK(mb.dispatch_send(queue_, {.tokens = rows_of(x.data(), tokens, hidden),
                                          .choices = dense(ids.data(), tokens, topk)}));
    at(n, phase::before_receive);
    auto const in = mb.dispatch_receive(queue_);
    if (!in) return in.error();
    std::vector<float> made(static_cast<std::size_t>(*in->end) * hidden);
    for (int e = 0; e < in->num_local_experts; ++e)
      for (int p = in->starts[e]; p < in->starts[e] + in->counts[e]; ++p)
        for (int i = 0; i < hidden; ++i)
          made[static_cast<std::size_t>(p * hidden + i)] =
              reinterpret_cast<float const*>(in->rows[p])[i] *
              static_cast<float>(in->first_expert + e + 1);
    at(n, phase::before_return);
    FERRY_CHECK(mb.combine_send(queue_, rows_of(made.data(), *in->end, hidden)));
    at(n, phase::before_gather);
    FERRY_CHECK(mb.combine_receive(queue_, rows_of(y.data(), tokens, hidden)));
    for (std::size_t i = 0; i < y.size(); ++i) {
      int const t = static_cast<int>(i) / hidden;
      float const wanted =
          value(n, t) * static_cast<float>((n + t) % experts() + (n + t + 2) % experts() + 2);
      if (y[i] != wanted)
        return error{error_code::internal,
                     "a sum of " + std::to_string(y[i]) + " instead of " + std::to_string(wanted)};
    }
    return {};
  }

 private:
  static exchange_options options(crowd const& c) {
    exchange_options o;
    o.num_experts = 2 * c.ranks;
    o.topk = topk;
    o.hidden = hidden;
    o.max_tokens = tokens;
    o.tokens = o.expert_rows = o.output = dtype::f32;
    o.wire = o.combine_wire = wire::f32;
    o.chunk_tokens = 2;
    o.blocks = c.blocks;
    return o;
  }
  int experts() const { return 2 * crowd_.ranks; }
  float value(int n, int t) const {
    return static_cast<float>(n % 100 * 64 + group_.rank() * 8 + t + 1);
  }
  void at(int n, phase p) const {
    if (n == 4 && p == crowd_.when && group_.rank() == crowd_.victim) ::raise(crowd_.signal);
  }

  crowd crowd_;
  group group_;
  exchange exchange_;
  queue queue_;
};

std::string name_of(int rank) {
  return "rank " + std::to_string(rank) + " ";
}

/// Takes steps until one fails, which it must, with this code, for this rank, and soon enough.
void expect_to_hear(member& m, int victim, error_code code, std::chrono::milliseconds at_most,
                    board* b) {
  for (int n = 1; n <= 100000; ++n) {
    if (b) ++b->steps;
    auto const start = clock::now();
    result<void> const r = m.step(n);
    if (r) continue;
    auto const took = std::chrono::duration_cast<std::chrono::milliseconds>(clock::now() - start);
    EXPECT_EQ(r.error().code, code) << r.error().message;
    EXPECT_TRUE(r.error().message.starts_with(name_of(victim))) << r.error().message;
    EXPECT_LT(took, at_most) << r.error().message;
    result<void> const again = m.step(n);
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().code, error_code::invalid_state) << "the group is broken and says so";
    return;
  }
  ADD_FAILURE() << "rank " << victim << " ended, and nobody noticed";
}

void expect_killed(run_report const& report, int victim) {
  for (std::size_t r = 0; r < report.ranks.size(); ++r) {
    rank_end const& end = report.ranks[r];
    if (static_cast<int>(r) == victim) {
      EXPECT_EQ(end.signal, SIGKILL) << end.output;
    } else {
      EXPECT_TRUE(end.ok()) << "rank " << r << ":\n" << end.output;
    }
  }
}

void expect_death_is_heard_of(crowd const& c) {
  SCOPED_TRACE(testing::Message() << c.ranks << " ranks, rank " << c.victim << " dies in phase "
                                  << static_cast<int>(c.when));
  auto const files = shared_memory_files();
  run_report const report = run_ranks(c.ranks, [&](int rank, std::string const& address) {
    become(c.as);
    member m(c, rank, address);
    // Long before the deadline: a death is seen, not waited for.
    expect_to_hear(m, c.victim, error_code::unreachable, 3s, nullptr);
  });
  expect_killed(report, c.victim);
  EXPECT_EQ(shared_memory_files(), files);
}

class a_death : public ::testing::TestWithParam<phase> {};

TEST_P(a_death, is_told_to_all_others) {
  for (int ranks = 2; ranks <= 5; ++ranks)
    expect_death_is_heard_of({.ranks = ranks, .victim = ranks / 2, .when = GetParam()});
}
TEST_P(a_death, of_rank_0_is_told_to_all_others) {
  expect_death_is_heard_of({.ranks = 3, .victim = 0, .when = GetParam()});
}
TEST_P(a_death, is_told_to_ordinary_users) {
  if (::geteuid() != 0) GTEST_SKIP() << "the other cases run as an ordinary user already";
  expect_death_is_heard_of({.ranks = 3, .victim = 2, .when = GetParam(), .as = user::nobody});
}
TEST_P(a_death, is_told_to_ranks_of_several_blocks) {
  expect_death_is_heard_of({.ranks = 3, .victim = 1, .when = GetParam(), .blocks = 2});
}

std::string phase_name(testing::TestParamInfo<phase> const& p) {
  static constexpr char const* names[] = {"before_send", "between_send_and_receive",
                                          "between_receive_and_return",
                                          "between_return_and_gather"};
  return names[static_cast<int>(p.param)];
}
INSTANTIATE_TEST_SUITE_P(in_each_phase, a_death,
                         ::testing::Values(phase::before_send, phase::before_receive,
                                           phase::before_return, phase::before_gather),
                         phase_name);

// Whatever it was doing: in the middle of a call, of a row, of a wait.
TEST(faults, a_death_at_any_moment_is_told_to_all_others) {
  std::minstd_rand random(42);
  for (int turn = 0; turn < 12; ++turn) {
    crowd c;
    c.ranks = 2 + turn % 4;
    c.victim = static_cast<int>(random() % static_cast<unsigned>(c.ranks));
    SCOPED_TRACE(testing::Message()
                 << "turn " << turn << ", rank " << c.victim << " of " << c.ranks);
    auto const files = shared_memory_files();
    shared_board b;
    rank_processes ranks(c.ranks, [&](int rank, std::string const& address) {
      member m(c, rank, address);
      expect_to_hear(m, c.victim, error_code::unreachable, 3s, b.operator->());
    });
    until([&] { return b->steps >= 20 * c.ranks; });
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 5000));
    ranks.send_signal(c.victim, SIGKILL);
    expect_killed(ranks.wait(40s), c.victim);
    EXPECT_EQ(shared_memory_files(), files);
  }
}

TEST(faults, nothing_is_left_behind_when_all_are_killed) {
  auto const files = shared_memory_files();
  auto const sockets = handover_sockets();
  crowd const c{.ranks = 4};
  shared_board b;
  rank_processes ranks(c.ranks, [&](int rank, std::string const& address) {
    member m(c, rank, address);
    for (int n = 1; n < 1000000 && m.step(n); ++n) ++b->steps;
  });
  until([&] { return b->steps >= 100; });
  EXPECT_GE(b->steps, 100);
  for (int r = 0; r < c.ranks; ++r) ranks.send_signal(r, SIGKILL);
  ranks.wait(20s);
  EXPECT_EQ(shared_memory_files(), files);
  EXPECT_EQ(handover_sockets(), sockets);
}

// A stopped process is not gone, so only the deadline tells. Who waits for a rank that waits for
// the stopped one names the stopped one, too.
void expect_stop_is_timed_out(crowd c) {
  c.signal = SIGSTOP;
  c.deadline = 1000ms;
  SCOPED_TRACE(testing::Message() << c.ranks << " ranks, rank " << c.victim << " stops in phase "
                                  << static_cast<int>(c.when));
  shared_board b;
  rank_processes ranks(c.ranks, [&](int rank, std::string const& address) {
    {
      member m(c, rank, address);
      expect_to_hear(m, c.victim, error_code::timeout, c.deadline + grace, nullptr);
    }
    ++b->finished;
  });
  until([&] { return b->finished == c.ranks - 1; });
  ranks.send_signal(c.victim, SIGKILL);
  expect_killed(ranks.wait(20s), c.victim);
}
TEST(faults, a_stopped_rank_is_named_at_the_deadline) {
  for (phase when :
       {phase::before_send, phase::before_receive, phase::before_return, phase::before_gather})
    expect_stop_is_timed_out({.ranks = 3, .victim = static_cast<int>(when) % 3, .when = when});
  expect_stop_is_timed_out({.ranks = 5, .victim = 4, .when = phase::before_return});
}

// It was too late, and must not go on as if nothing had happened.
TEST(faults, a_rank_that_comes_back_hears_that_the_others_gave_up) {
  crowd const c{
      .ranks = 3, .victim = 1, .when = phase::before_receive, .signal = SIGSTOP, .deadline = 500ms};
  shared_board b;
  rank_processes ranks(c.ranks, [&](int rank, std::string const& address) {
    {
      member m(c, rank, address);
      if (rank != c.victim) {
        expect_to_hear(m, c.victim, error_code::timeout, c.deadline + grace, nullptr);
      } else {
        for (int n = 1; n < 4; ++n) m.step(n).value();
        result<void> r = m.step(4);
        // What was sent to it before may be enough for this step.
        if (r) r = m.step(5);
        ASSERT_FALSE(r);
        EXPECT_EQ(r.error().code, error_code::timeout) << r.error().message;
        EXPECT_NE(r.error().message.find("gave up waiting for this rank, 1 "), std::string::npos)
            << r.error().message;
      }
    }
    ++b->finished;
  });
  until([&] { return b->finished == c.ranks - 1; });
  ranks.send_signal(c.victim, SIGCONT);
  run_report const report = ranks.wait(20s);
  EXPECT_TRUE(report.ok()) << report.describe();
}

/// Stops its process when it is armed and about to send a word to rank 1.
class stopping_transport final : public transport {
 public:
  static inline bool armed = false;
  explicit stopping_transport(std::unique_ptr<transport> behind) : behind_(std::move(behind)) {}
  abilities what_it_can() const override { return behind_->what_it_can(); }
  result<std::vector<std::byte>> expose(std::span<std::byte> window) override {
    return behind_->expose(window);
  }
  result<void> connect(int rank, std::span<std::byte const> address) override {
    return behind_->connect(rank, address);
  }
  result<post> put(remote_region to, std::byte const* from) override {
    return behind_->put(to, from);
  }
  result<post> signal(remote_region to, std::uint64_t value, strength promise) override {
    if (armed && to.rank == 1) ::raise(SIGSTOP);
    return behind_->signal(to, value, promise);
  }
  result<void> progress() override { return behind_->progress(); }
  result<void> flush(int rank, std::chrono::milliseconds timeout) override {
    return behind_->flush(rank, timeout);
  }

 private:
  std::unique_ptr<transport> behind_;
};

// Rank 2 stops when its header has reached rank 0 but not rank 1. Rank 0 has all that it needs of
// rank 2 and waits for rank 1's results alone; rank 1 waits for rank 2.
TEST(faults, who_waits_for_a_waiting_rank_names_the_stopped_one) {
  carry_settings s{.ranks = 3, .steps = 1000, .timeout = 1000ms};
  auto const sends_to = [&](int n, int from, int to) {
    bool sends = false;
    for (int e : carried_rank::plan_of(s, n, from).ids)
      sends = sends || (e >= 0 && owner_of(e, s.ranks, carried_rank::experts_of(s)) == to);
    return sends;
  };
  int stop_at = 3;
  while (carried_rank::plan_of(s, stop_at, 2).tokens() != 0 || !sends_to(stop_at, 0, 1) ||
         sends_to(stop_at, 0, 2))
    ++stop_at;
  shared_board b;
  rank_processes ranks(3, [&](int rank, std::string const& address) {
    if (rank == 2) s.before_step = [&](int n) { stopping_transport::armed = n == stop_at; };
    {
      group const g = join(tcp(address, rank, 3), {.timeout = 10s}).value();
      auto const shared = g.share_window(carried_rank::window_bytes(s)).value();
      carried_rank self(s, g, rank, shared.windows, [](int me, std::vector<mapped_window> windows) {
        return std::make_unique<stopping_transport>(
            make_shared_memory_transport(me, std::move(windows)));
      });
      g.barrier().value();
      carried outcome(s);
      std::atomic<int> steps{0};
      self.run(outcome, steps);
      auto const i = static_cast<std::size_t>(rank);
      EXPECT_EQ(steps, stop_at - 1);
      EXPECT_EQ(outcome.codes[i], error_code::timeout) << outcome.errors[i];
      EXPECT_TRUE(outcome.errors[i].starts_with("rank 2 ")) << outcome.errors[i];
      EXPECT_LT(outcome.longest_call[i], s.timeout + grace) << outcome.errors[i];
      std::string const waited =
          rank == 0 ? "the back word of rank 1" : "the header word of rank 2";
      EXPECT_NE(outcome.errors[i].find(waited), std::string::npos) << outcome.errors[i];
    }
    ++b->finished;
  });
  until([&] { return b->finished == 2; });
  ranks.send_signal(2, SIGKILL);
  expect_killed(ranks.wait(20s), 2);
}

std::chrono::microseconds cpu_time() {
  rusage u{};
  ::getrusage(RUSAGE_SELF, &u);
  auto const of = [](timeval const& t) {
    return std::chrono::seconds(t.tv_sec) + std::chrono::microseconds(t.tv_usec);
  };
  return of(u.ru_utime) + of(u.ru_stime);
}

// R11
TEST(faults, a_rank_that_waits_sleeps) {
  crowd const c{.ranks = 8};
  run_report const report = run_ranks(c.ranks, [&](int rank, std::string const& address) {
    member m(c, rank, address);
    for (int n = 1; n <= 3; ++n) m.step(n).value();
    m.ranks().barrier().value();
    auto const before = cpu_time();
    auto const start = clock::now();
    if (rank == 0) std::this_thread::sleep_for(1s);
    m.step(4).value();
    EXPECT_GT(clock::now() - start, 500ms) << "it did not wait";
    EXPECT_LT(cpu_time() - before, 100ms);
    m.ranks().barrier().value();
  });
  EXPECT_TRUE(report.ok()) << report.describe();
}

}  // namespace
}  // namespace ferry::test
