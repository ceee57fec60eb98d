// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "start_line.hpp"

#include <fmt/format.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <thread>

namespace ferry::bench {

int usable_cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

std::int64_t nanoseconds_now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

result<start_line> start_line::make(group const& ranks, int threads_per_rank) {
  start_line made;
  constexpr std::size_t line = 128;
  FERRY_TRY(made.windows_, ranks.share_window(2 * line));
  std::byte* const first = made.windows_.windows[0].data();
  result<void> mapped;
  if (!first)
    mapped = error{error_code::unsupported, "rank 0 cannot be mapped: " + made.windows_.why[0]};
  FERRY_CHECK(ranks.agree(mapped));
  made.arrived_ = reinterpret_cast<std::uint32_t*>(first);
  made.turn_ = reinterpret_cast<std::uint32_t*>(first + line);
  made.size_ = static_cast<std::uint32_t>(ranks.size());
  made.crowded_ = ranks.ranks_on_this_machine() * threads_per_rank > usable_cores();
  made.timeout_ = ranks.timeout();
  return made;
}

result<void> start_line::wait() {
  std::atomic_ref arrived(*arrived_), turn(*turn_);
  std::uint32_t const now = turn.load(std::memory_order_acquire);
  if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == size_) {
    arrived.store(0, std::memory_order_relaxed);
    turn.store(now + 1, std::memory_order_seq_cst);
    syscall(SYS_futex, turn_, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
    return {};
  }
  std::int64_t const end = nanoseconds_now() + std::chrono::nanoseconds(timeout_).count();
  int const looks = crowded_ ? 0 : 20'000;
  for (int i = 0; i < looks; ++i) {
    if (turn.load(std::memory_order_acquire) != now) return {};
    FERRY_PAUSE();
  }
  while (turn.load(std::memory_order_acquire) == now) {
    if (nanoseconds_now() > end)
      return error{error_code::timeout,
                   fmt::format("not all ranks came to the start within {} ms", timeout_.count())};
    timespec const at_most{0, 50'000'000};
    syscall(SYS_futex, turn_, FUTEX_WAIT, now, &at_most, nullptr, 0);
  }
  return {};
}

}  // namespace ferry::bench
