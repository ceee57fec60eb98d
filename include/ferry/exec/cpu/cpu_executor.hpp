// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Runs a function on a fixed set of threads, the calling one among them.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace ferry {

/// A few threads that start together and are waited for together.
/// Order    one `run` on several teams at a time; calls from several threads take turns
class cpu_executor {
 public:
  /// Throws std::system_error when the system gives no more threads.
  explicit cpu_executor(int teams);
  ~cpu_executor();
  cpu_executor(cpu_executor const&) = delete;
  cpu_executor& operator=(cpu_executor const&) = delete;

  int teams() const { return 1 + static_cast<int>(workers_.size()); }

  /// Calls work(index, teams()) once for every index below teams() and returns when all are done.
  /// `work` must not throw.
  template <class Work>
  void run(Work const& work) {
    run(teams(), work);
  }
  /// The same on the first `some` of them: work(index, some). At least 1, at most teams().
  template <class Work>
  void run(int some, Work const& work) {
    if (some == 1)
      work(0, 1);
    else
      run_on({&work,
              [](void const* w, int index, int teams) {
                (*static_cast<Work const*>(w))(index, teams);
              },
              some});
  }

 private:
  struct task {
    void const* work = nullptr;
    void (*call)(void const*, int, int) = nullptr;
    int teams = 0;
  };
  void run_on(task t);
  void work_loop(int index);
  void stop();

  std::mutex one_at_a_time_;
  std::mutex mutex_;
  std::condition_variable start_, finished_;
  task task_;
  unsigned generation_ = 0;
  int running_ = 0;
  bool stop_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace ferry
