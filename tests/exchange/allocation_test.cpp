// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// Once an exchange, its graphs and an overlap are made, no call allocates, and the only system
// calls are those by which threads wait for each other.

#include "exchange/overlapped_steps.hpp"

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
enum class way {
  plain_calls,
  calls_on_a_stream,
  replays,
  interleaved,
  handed_over,
  concurrent,
  overlapped_replays,
  count_
};

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

/// Two slots of a rank, driven in one way.
class two_slots {
 public:
  two_slots(way how, world const& w, int rank, exchange& ep, group const& ranks)
      : how_(how),
        slot_(&ep.microbatch(0)),
        steps_(w, rank, ep, device(), 2),
        by_(overlap::make(ranks, queue_for(how), queue_for(how), options_of(how)).value()) {
    bool const replays = how == way::replays || how == way::overlapped_replays;
    if (replays) graph_ = capture(by_.compute(), [this] { return put(); }).value();
  }
  result<void> run() {
    FERRY_CHECK(graph_ ? graph_->launch(by_.compute()) : put());
    FERRY_CHECK(by_.compute().wait(20s));
    return slot_->wait(by_.compute());
  }
  overlapped_steps& steps() { return steps_; }

 private:
  static queue queue_for(way how) {
    return how == way::plain_calls ? queue() : queue::cpu_stream().value();
  }
  static overlap_options options_of(way how) {
    if (how == way::handed_over) return {.driver = overlap_driver::handed_over};
    if (how == way::concurrent) return {.driver = overlap_driver::concurrent};
    return {};
  }
  result<void> put() {
    bool const overlapped = how_ == way::interleaved || how_ == way::handed_over ||
                            how_ == way::concurrent || how_ == way::overlapped_replays;
    if (overlapped) return by_.run(steps_.lists());
    // Stage by stage on one queue.
    for (std::size_t s = 0; s < steps_.lists()[0].size(); ++s)
      for (stage_list const& list : steps_.lists()) FERRY_CHECK(list[s].put(by_.compute()));
    return {};
  }

  way how_;
  microbatch* slot_;
  overlapped_steps steps_;
  overlap by_;
  std::optional<graph> graph_;
};

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
    two_slots mine(how, w, ranks.rank(), ep, ranks);
    auto const once = [&](int i) {
      mine.steps().bring(drawn, i);
      wrong.check(mine.run().has_value(), "a step failed");
      mine.steps().check(drawn, i, wrong);
    };
    once(0);
    together.arrive_and_wait();
    if (ranks.rank() == 0) begin();
    together.arrive_and_wait();
    for (int i = 1; i <= steps_counted; ++i) once(i);
    together.arrive_and_wait();
    if (ranks.rank() == 0) end();
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

std::string name_of(testing::TestParamInfo<int> const& which) {
  static constexpr char const* names[] = {"plain_calls",
                                          "calls_on_a_stream",
                                          "replays",
                                          "interleaved_microbatches",
                                          "threads_that_hand_over",
                                          "concurrent_threads",
                                          "overlapped_replays"};
  return names[which.param];
}

class a_step : public testing::TestWithParam<int> {
 protected:
  static way how() { return static_cast<way>(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(by, a_step, testing::Range(0, static_cast<int>(way::count_)), name_of);

TEST_P(a_step, allocates_nothing) {
  run_steps(
      how(),
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
  EXPECT_EXIT(run_without_system_calls(how()), testing::ExitedWithCode(0), "");
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
