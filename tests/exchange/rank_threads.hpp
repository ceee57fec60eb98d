// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Ranks that are threads of one test, and what they found wrong.
#pragma once

#include <ferry/group.hpp>

#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace ferry::oracle {

/// The first few complaints of all ranks. A failed check does not stop a rank: its peers count on
/// it.
class complaints {
 public:
  void add(std::string what) {
    std::lock_guard const lock(mutex_);
    if (++num_ <= 8) text_ += what + "\n";
  }
  void check(bool ok, std::string const& what) {
    if (!ok) add(what);
  }
  bool none() const { return num_ == 0; }
  std::string text() const { return std::to_string(num_) + " complaints\n" + text_; }

 private:
  std::mutex mutex_;
  int num_ = 0;
  std::string text_;
};

/// Runs body(group) as every rank of a group of threads, and waits for all.
inline void run_ranks(int ranks, std::chrono::milliseconds timeout, complaints& wrong,
                      std::function<void(group const&)> const& body, int ranks_per_node = 0) {
  thread_ranks const meeting = ferry::threads(ranks);
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      result<group> const joined =
          join(meeting.rank(r), {.timeout = timeout, .ranks_per_node = ranks_per_node});
      if (!joined) return wrong.add(joined.error().message);
      body(*joined);
    });
  for (std::thread& t : threads) t.join();
}

}  // namespace ferry::oracle
