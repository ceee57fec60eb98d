// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// Once an exchange and its graphs are made, no call allocates, and the only system calls are those
// by which threads wait for each other.

#include "exchange/captured_step.hpp"

#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <thread>

namespace {
std::atomic<bool> counting{false};
std::atomic<long> allocations{0};
void count_one() {
  if (counting.load(std::memory_order_relaxed)) allocations.fetch_add(1, std::memory_order_relaxed);
}
}  // namespace

// The C library's own, under the names by which it offers them to whoever replaces malloc.
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t n) {
  count_one();
  return __libc_malloc(n);
}
void* calloc(std::size_t n, std::size_t size) {
  count_one();
  return __libc_calloc(n, size);
}
void* realloc(void* p, std::size_t n) {
  count_one();
  return __libc_realloc(p, n);
}
void* aligned_alloc(std::size_t align, std::size_t n) {
  count_one();
  return __libc_memalign(align, n);
}
int posix_memalign(void** p, std::size_t align, std::size_t n) {
  count_one();
  *p = __libc_memalign(align, n);
  return *p ? 0 : ENOMEM;
}
}

namespace {

using namespace ferry;
using namespace ferry::oracle;
using namespace std::chrono_literals;

constexpr int steps_counted = 1000;
enum class way { plain_calls, calls_on_a_stream, replays };

/// All threads of this process may wait, yield, sleep and end; any other call ends it at
/// once, with the call's number as status.
bool allow_only_waiting() {
  struct sigaction act {};
  act.sa_flags = SA_SIGINFO;
  act.sa_sigaction = [](int, siginfo_t* info, void*) { _exit(info->si_syscall & 0xFF); };
  if (sigaction(SIGSYS, &act, nullptr) != 0) return false;
  constexpr std::uint32_t allowed[] = {SYS_futex, SYS_sched_yield, SYS_clock_nanosleep,
                                       SYS_exit,  SYS_exit_group,  SYS_rt_sigreturn};
  std::vector<sock_filter> filter{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (std::uint32_t const call : allowed) {
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1));
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP));
  sock_fprog const program{static_cast<unsigned short>(filter.size()), filter.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
  return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}

/// Two ranks, two slots. `begin` and `end` are called by one rank while the other waits in a
/// barrier; in between both run their steps.
template <class Begin, class End>
void run_steps(way how, Begin const& begin, End const& end) {
  world const w = exact_world(2);
  dice from(11);
  std::vector<step> drawn;
  for (int i = 0; i < 16; ++i) drawn.push_back(random_step(w, from));
  complaints wrong;
  std::barrier<> together(2);
  run_ranks(2, 30s, wrong, [&](group const& ranks) {
    exchange ep = make_exchange(ranks, w.options).value();
    queue q = how == way::plain_calls ? queue() : queue::cpu_stream().value();
    int const rank = ranks.rank();
    captured_step a(w, rank, ep, 0, device(), w.options.max_tokens);
    captured_step b(w, rank, ep, 1, device(), w.options.max_tokens);
    auto const put = [&]() -> result<void> {
      FERRY_CHECK(a.send(q));
      FERRY_CHECK(b.send(q));
      FERRY_CHECK(a.receive(q));
      FERRY_CHECK(b.receive(q));
      FERRY_CHECK(a.give_back(q));
      FERRY_CHECK(b.give_back(q));
      FERRY_CHECK(a.gather(q));
      return b.gather(q);
    };
    graph const g = capture(q, put).value();
    auto const once = [&](int i) {
      a.bring(drawn[static_cast<std::size_t>(i % 16)]);
      b.bring(drawn[static_cast<std::size_t>((i + 5) % 16)]);
      result<void> done = how == way::replays ? g.launch(q) : put();
      if (done) done = ep.microbatch(0).wait(q);
      wrong.check(done.has_value(), "a step failed");
      a.check(drawn[static_cast<std::size_t>(i % 16)], i, wrong);
      b.check(drawn[static_cast<std::size_t>((i + 5) % 16)], i, wrong);
    };
    once(0);
    together.arrive_and_wait();
    if (rank == 0) begin();
    together.arrive_and_wait();
    for (int i = 1; i <= steps_counted; ++i) once(i);
    together.arrive_and_wait();
    if (rank == 0) end();
    together.arrive_and_wait();
  });
  if (!wrong.none()) {
    std::fputs(wrong.text().c_str(), stderr);
    std::abort();
  }
}

void run_without_system_calls(way how) {
  run_steps(
      how,
      [] {
        if (!allow_only_waiting()) _exit(250);
      },
      [] { _exit(0); });
}

std::string name_of(testing::TestParamInfo<way> const& which) {
  switch (which.param) {
    case way::plain_calls: return "plain_calls";
    case way::calls_on_a_stream: return "calls_on_a_stream";
    case way::replays: break;
  }
  return "replays";
}

class a_step : public testing::TestWithParam<way> {};
INSTANTIATE_TEST_SUITE_P(by, a_step,
                         testing::Values(way::plain_calls, way::calls_on_a_stream, way::replays),
                         name_of);

TEST_P(a_step, allocates_nothing) {
  run_steps(
      GetParam(),
      [] {
        allocations = 0;
        counting = true;
      },
      [] { counting = false; });
  EXPECT_EQ(allocations, 0) << "in " << steps_counted << " steps of each of two slots";
  counting = true;
  std::vector<int> const seen(3);
  counting = false;
  EXPECT_EQ(allocations, 1) << "an allocation is counted";
}

TEST_P(a_step, makes_no_system_call_but_to_wait) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  std::uint32_t const trap = SECCOMP_RET_TRAP;
  if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &trap) != 0)
    GTEST_SKIP() << "this kernel filters no system calls";
  EXPECT_EXIT(run_without_system_calls(GetParam()), testing::ExitedWithCode(0), "");
}

TEST(a_filter, sees_a_system_call) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        if (!allow_only_waiting()) _exit(250);
        syscall(SYS_getpid);
        _exit(0);
      },
      testing::ExitedWithCode(SYS_getpid), "");
}

}  // namespace
