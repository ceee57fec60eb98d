// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "exec/host_streams.hpp"

#include "base/fail.hpp"

#include <algorithm>

namespace ferry {

/// What is being captured, by all streams that events have drawn in.
class host_capture {
 public:
  std::size_t join(host_stream& s) {
    std::lock_guard const lock(guard_);
    members_.push_back(&s);
    branches_.emplace_back();
    return branches_.size() - 1;
  }
  void add(std::size_t branch, host_graph::step step) {
    std::lock_guard const lock(guard_);
    branches_[branch].push_back(std::move(step));
  }
  std::size_t new_signal() {
    std::lock_guard const lock(guard_);
    return signals_++;
  }

  /// Lets all streams go and makes the graph.
  result<std::shared_ptr<host_graph>> finish() {
    for (host_stream* s : members_) {
      std::lock_guard const lock(s->guard_);
      s->capture_ = nullptr;
    }
    if (std::size_t const loose = first_loose_branch())
      return fail(
          error_code::invalid_state,
          "queue {} of the capture was not joined again: record an event at its end and let "
          "the first queue wait for it",
          loose);
    return std::make_shared<host_graph>(std::move(branches_), signals_);
  }

 private:
  // A branch is joined when what it says last is waited for by one that is.
  std::size_t first_loose_branch() const {
    std::vector<bool> joined(branches_.size(), false);
    joined[0] = true;
    for (bool again = true; again;) {
      again = false;
      for (std::size_t b = 1; b < branches_.size(); ++b) {
        if (joined[b] || branches_[b].empty() || branches_[b].back().says < 0) continue;
        for (std::size_t by = 0; by < branches_.size() && !joined[b]; ++by)
          joined[b] = joined[by] && std::any_of(branches_[by].begin(), branches_[by].end(),
                                                [&](host_graph::step const& step) {
                                                  return step.waits == branches_[b].back().says;
                                                });
        again = again || joined[b];
      }
    }
    auto const loose = std::find(joined.begin(), joined.end(), false);
    return loose == joined.end() ? 0 : static_cast<std::size_t>(loose - joined.begin());
  }

  std::mutex guard_;
  std::vector<host_stream*> members_;
  std::vector<host_graph::branch> branches_;
  std::size_t signals_ = 0;
};

bool host_event::has_happened() {
  std::lock_guard const lock(guard_);
  std::lock_guard const counting(count_->guard);
  return count_->happened >= recorded_;
}

host_graph::host_graph(std::vector<branch> branches, std::size_t signals)
    : branches_(std::move(branches)), signals_(signals) {
  for (std::size_t b = 1; b < branches_.size(); ++b)
    workers_.emplace_back([this, b] { work_loop(b); });
}

host_graph::~host_graph() {
  {
    std::lock_guard const lock(guard_);
    stop_ = true;
  }
  changed_.notify_all();
  for (std::thread& t : workers_) t.join();
}

result<void> host_graph::run() {
  std::lock_guard const turn(one_at_a_time_);
  {
    std::lock_guard const lock(guard_);
    std::fill(signals_.begin(), signals_.end(), false);
    failed_.reset();
    running_ = workers_.size();
    ++launches_;
  }
  changed_.notify_all();
  run_branch(branches_[0]);
  std::unique_lock lock(guard_);
  changed_.wait(lock, [this] { return running_ == 0; });
  if (failed_) return *failed_;
  return {};
}

void host_graph::work_loop(std::size_t branch) {
  std::uint64_t seen = 0;
  std::unique_lock lock(guard_);
  for (;;) {
    changed_.wait(lock, [&] { return stop_ || launches_ != seen; });
    if (stop_) return;
    seen = launches_;
    lock.unlock();
    run_branch(branches_[branch]);
    lock.lock();
    if (--running_ == 0) changed_.notify_all();
  }
}

// Signals are given also after a failure, so that no branch waits for ever.
void host_graph::run_branch(branch const& steps) {
  for (step const& s : steps) {
    std::unique_lock lock(guard_);
    if (s.waits >= 0) {
      changed_.wait(lock, [&] { return signals_[static_cast<std::size_t>(s.waits)]; });
    } else if (s.says >= 0) {
      signals_[static_cast<std::size_t>(s.says)] = true;
      changed_.notify_all();
    } else if (!failed_) {
      lock.unlock();
      if (result<void> done = s.job(); !done) fail(std::move(done).error());
    }
  }
}

void host_graph::fail(error why) {
  std::lock_guard const lock(guard_);
  if (!failed_) failed_ = std::move(why);
}

host_stream::host_stream() : thread_([this] { work_loop(); }) {}

host_stream::~host_stream() {
  {
    std::lock_guard const lock(guard_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void host_stream::work_loop() {
  std::unique_lock lock(guard_);
  for (;;) {
    changed_.wait(lock, [this] { return stop_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    host_job job = std::move(jobs_.front());
    jobs_.pop_front();
    busy_ = true;
    lock.unlock();
    result<void> done = job();
    lock.lock();
    busy_ = false;
    if (!done && !failed_) failed_ = std::move(done).error();
  }
}

void host_stream::put(host_job job) {
  std::lock_guard const lock(guard_);
  if (capture_) return capture_->add(branch_, {.job = std::move(job)});
  jobs_.push_back([this, work = std::move(job)]() -> result<void> {
    {
      std::lock_guard const looking(guard_);
      if (failed_) return {};
    }
    return work();
  });
  changed_.notify_all();
}

void host_stream::record(host_event& e) {
  std::lock_guard const lock(guard_);
  std::lock_guard const changing(e.guard_);
  if (capture_) {
    e.captured_in_ = capture_;
    e.signal_ = capture_->new_signal();
    return capture_->add(branch_, {.says = static_cast<std::ptrdiff_t>(e.signal_)});
  }
  e.captured_in_.reset();
  jobs_.push_back([count = e.count_, turn = ++e.recorded_]() -> result<void> {
    {
      std::lock_guard const counting(count->guard);
      count->happened = std::max(count->happened, turn);
    }
    count->changed.notify_all();
    return {};
  });
  changed_.notify_all();
}

result<void> host_stream::wait_for(host_event& e) {
  std::lock_guard const lock(guard_);
  std::lock_guard const changing(e.guard_);
  std::shared_ptr<host_capture> const theirs = e.captured_in_.lock();
  if (theirs || capture_) {
    if (!theirs)
      return fail(
          error_code::invalid_state,
          "a captured queue cannot wait for an event that was recorded outside the capture");
    if (capture_ && capture_ != theirs)
      return fail(error_code::invalid_state,
                  "a queue cannot wait for an event of another queue's capture");
    if (!capture_) {
      branch_ = theirs->join(*this);
      capture_ = theirs;
    }
    capture_->add(branch_, {.waits = static_cast<std::ptrdiff_t>(e.signal_)});
    return {};
  }
  jobs_.push_back([count = e.count_, turn = e.recorded_]() -> result<void> {
    std::unique_lock waiting(count->guard);
    count->changed.wait(waiting, [&] { return count->happened >= turn; });
    return {};
  });
  changed_.notify_all();
  return {};
}

result<bool> host_stream::is_done() {
  std::lock_guard const lock(guard_);
  if (failed_) return *failed_;
  return jobs_.empty() && !busy_;
}

result<void> host_stream::begin_capture() {
  std::lock_guard const lock(guard_);
  if (capture_) return fail(error_code::invalid_state, "the queue is being captured already");
  capture_ = std::make_shared<host_capture>();
  branch_ = capture_->join(*this);
  return {};
}

bool host_stream::is_capturing() {
  std::lock_guard const lock(guard_);
  return capture_ != nullptr;
}

result<std::shared_ptr<host_graph>> host_stream::end_capture() {
  std::shared_ptr<host_capture> capture;
  {
    std::lock_guard const lock(guard_);
    if (!capture_ || branch_ != 0)
      return fail(error_code::invalid_state, "this queue did not begin a capture");
    capture = capture_;
  }
  return capture->finish();
}

void host_stream::launch(std::shared_ptr<host_graph> g) {
  put([graph = std::move(g)] { return graph->run(); });
}

}  // namespace ferry
