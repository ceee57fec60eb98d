// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Streams, events and graphs whose work is done by threads of this process: CPU queues, and the
/// queues of emulated devices.
#pragma once

#include <ferry/base/result.hpp>

#include "exec/host_job.hpp"

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace ferry {

class host_capture;

/// A point in a stream (see event.hpp).
class host_event {
 public:
  /// Errors   invalid_state it was recorded in a capture: it is a place in a graph
  result<bool> has_happened();

 private:
  friend class host_stream;
  static error is_in_a_graph();
  struct count {
    /// Errors   timeout the queue it was recorded on did not come so far
    result<void> wait_until(std::uint64_t turn);
    void reach(std::uint64_t turn);

    std::mutex guard;
    std::condition_variable changed;
    std::uint64_t happened = 0;
  };
  std::mutex guard_;
  std::uint64_t recorded_ = 0;
  std::shared_ptr<count> count_ = std::make_shared<count>();
  bool in_a_graph_ = false;  ///< when it was last recorded
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
  void run_branch(branch& steps);
  void note(error why);

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

/// Who does the jobs of a stream.
enum class host_worker : std::uint8_t {
  own_thread,
  caller,  ///< each job is done when the call that puts it returns
};

/// Jobs in order.
class host_stream {
 public:
  explicit host_stream(host_worker by = host_worker::own_thread);
  /// Waits for what was put on it.
  ~host_stream();
  host_stream(host_stream const&) = delete;

  bool has_own_thread() const { return by_ == host_worker::own_thread; }

  /// Errors   of a stream that has failed: what failed; where the caller works: what the job
  ///          returns
  result<void> put(host_job job);
  void record(host_event& e);
  result<void> wait_for(host_event& e);

  /// Whether all is done; the first failure, once the work before it is done. What stands behind a
  /// failure is left out.
  result<bool> is_done();

  result<void> begin_capture();
  bool is_capturing();
  result<std::shared_ptr<host_graph>> end_capture();
  result<void> launch(std::shared_ptr<host_graph> g);

 private:
  friend class host_capture;
  struct queued {
    host_job job;
    bool always = false;  ///< done also behind a failure, because others wait for it
  };
  void work_loop();
  void push(queued q);
  queued pop();

  host_worker const by_;
  std::mutex guard_;
  std::condition_variable changed_;
  std::vector<queued> jobs_;  ///< a ring, which grows only when it is full
  std::size_t first_ = 0;
  std::size_t waiting_ = 0;
  bool busy_ = false;
  bool stop_ = false;
  std::optional<error> failed_;
  std::shared_ptr<host_capture> capture_;
  std::size_t branch_ = 0;
  std::thread thread_;
};

}  // namespace ferry
