// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/exec/cpu/cpu_executor.hpp>

namespace ferry {

cpu_executor::cpu_executor(int teams) {
  try {
    for (int i = 1; i < teams; ++i) workers_.emplace_back([this, i] { work_loop(i); });
  } catch (...) {
    stop();
    throw;
  }
}

cpu_executor::~cpu_executor() {
  stop();
}

void cpu_executor::stop() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  start_.notify_all();
  for (auto& worker : workers_) worker.join();
}

void cpu_executor::run_on(task t) {
  std::lock_guard turn(one_at_a_time_);
  {
    std::lock_guard lock(mutex_);
    task_ = t;
    running_ = t.teams - 1;
    ++generation_;
  }
  start_.notify_all();
  t.call(t.work, 0, t.teams);
  std::unique_lock lock(mutex_);
  finished_.wait(lock, [this] { return running_ == 0; });
}

void cpu_executor::work_loop(int index) {
  unsigned seen = 0;
  std::unique_lock lock(mutex_);
  for (;;) {
    start_.wait(lock, [&] { return stop_ || generation_ != seen; });
    if (stop_) return;
    seen = generation_;
    task const t = task_;
    if (index >= t.teams) continue;
    lock.unlock();
    t.call(t.work, index, t.teams);
    lock.lock();
    if (--running_ == 0) finished_.notify_one();
  }
}

}  // namespace ferry
