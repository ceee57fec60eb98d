// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Streams, events and graphs whose work is done by threads of this process.
#pragma once

#include <ferry/base/result.hpp>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace ferry {

/// A piece of work; what it returns stops the stream.
using host_job = std::function<result<void>()>;

class host_capture;

/// A point in a stream (see event.hpp).
class host_event {
 public:
  bool has_happened();

 private:
  friend class host_stream;
  struct count {
    std::mutex guard;
    std::condition_variable changed;
    std::uint64_t happened = 0;
  };
  std::mutex guard_;
  std::uint64_t recorded_ = 0;
  std::shared_ptr<count> count_ = std::make_shared<count>();
  std::weak_ptr<host_capture> captured_in_;
  std::size_t signal_ = 0;
};

/// Jobs of several streams, in the order of each, that may wait for each other.
class host_graph {
 public:
  struct step {
    host_job job = {};         ///< empty where the step is one of the next two
    std::ptrdiff_t says = -1;  ///< a signal that is given here
    std::ptrdiff_t waits = -1;
  };
  using branch = std::vector<step>;

  host_graph(std::vector<branch> branches, std::size_t signals);
  ~host_graph();
  host_graph(host_graph const&) = delete;

  /// Runs all branches, the first one on the calling thread, and returns when all have ended.
  result<void> run();

 private:
  void work_loop(std::size_t branch);
  void run_branch(branch const& steps);
  void fail(error why);

  std::vector<branch> branches_;
  std::mutex one_at_a_time_;
  std::mutex guard_;
  std::condition_variable changed_;
  std::vector<bool> signals_;
  std::uint64_t launches_ = 0;
  std::size_t running_ = 0;
  bool stop_ = false;
  std::optional<error> failed_;
  std::vector<std::thread> workers_;
};

/// Jobs in order, done by a thread of its own.
class host_stream {
 public:
  host_stream();
  /// Waits for what was put on it.
  ~host_stream();
  host_stream(host_stream const&) = delete;

  void put(host_job job);
  void record(host_event& e);
  result<void> wait_for(host_event& e);

  /// Whether all is done; the first failure, once the work before it is done. What stands behind a
  /// failure is left out.
  result<bool> is_done();

  result<void> begin_capture();
  bool is_capturing();
  result<std::shared_ptr<host_graph>> end_capture();
  void launch(std::shared_ptr<host_graph> g);

 private:
  friend class host_capture;
  void work_loop();

  std::mutex guard_;
  std::condition_variable changed_;
  std::deque<host_job> jobs_;
  bool busy_ = false;
  bool stop_ = false;
  std::optional<error> failed_;
  std::shared_ptr<host_capture> capture_;
  std::size_t branch_ = 0;
  std::thread thread_;
};

}  // namespace ferry
