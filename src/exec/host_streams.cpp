// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "exec/host_streams.hpp"

#include "base/fail.hpp"

#include <algorithm>
#include <chrono>

namespace ferry {
namespace {

// Whoever an event waits for has deadlines of its own, which are shorter: this one ends only what
// waits for itself.
constexpr std::chrono::seconds longest_hold{3600};
constexpr std::size_t jobs_at_first = 256;

}  // namespace

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

error host_event::is_in_a_graph() {
  return fail(error_code::invalid_state,
              "an event that was last recorded in a capture is a place in its graph: record it "
              "again behind a launch");
}

result<bool> host_event::has_happened() {
  std::lock_guard const lock(guard_);
  if (in_a_graph_) return is_in_a_graph();
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
void host_graph::run_branch(branch& steps) {
  for (step& s : steps) {
    std::unique_lock lock(guard_);
    if (s.waits >= 0) {
      changed_.wait(lock, [&] { return signals_[static_cast<std::size_t>(s.waits)]; });
    } else if (s.says >= 0) {
      signals_[static_cast<std::size_t>(s.says)] = true;
      changed_.notify_all();
    } else if (!failed_) {
      lock.unlock();
      if (result<void> done = s.job(); !done) note(std::move(done).error());
    }
  }
}

void host_graph::note(error why) {
  std::lock_guard const lock(guard_);
  if (!failed_) failed_ = std::move(why);
}

result<void> host_event::count::wait_until(std::uint64_t turn) {
  std::unique_lock waiting(guard);
  if (changed.wait_for(waiting, longest_hold, [&] { return happened >= turn; })) return {};
  return fail(error_code::timeout, "an event that a queue waits for did not happen within {} s",
              longest_hold.count());
}

void host_event::count::reach(std::uint64_t turn) {
  {
    std::lock_guard const counting(guard);
    happened = std::max(happened, turn);
  }
  changed.notify_all();
}

host_stream::host_stream(host_worker by) : by_(by) {
  if (by == host_worker::caller) return;
  jobs_.resize(jobs_at_first);
  thread_ = std::thread([this] { work_loop(); });
}

host_stream::~host_stream() {
  if (by_ == host_worker::caller) return;
  {
    std::lock_guard const lock(guard_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void host_stream::push(queued q) {
  if (waiting_ == jobs_.size()) {
    std::vector<queued> larger(2 * jobs_.size());
    for (std::size_t i = 0; i < waiting_; ++i)
      larger[i] = std::move(jobs_[(first_ + i) % jobs_.size()]);
    jobs_ = std::move(larger);
    first_ = 0;
  }
  jobs_[(first_ + waiting_++) % jobs_.size()] = std::move(q);
  changed_.notify_all();
}

host_stream::queued host_stream::pop() {
  queued q = std::move(jobs_[first_]);
  first_ = (first_ + 1) % jobs_.size();
  --waiting_;
  return q;
}

void host_stream::work_loop() {
  std::unique_lock lock(guard_);
  for (;;) {
    changed_.wait(lock, [this] { return stop_ || waiting_ > 0; });
    if (waiting_ == 0) return;
    queued next = pop();
    if (failed_ && !next.always) continue;
    busy_ = true;
    lock.unlock();
    result<void> done = next.job();
    next.job = {};  // what it holds may go before the stream says that it is done
    lock.lock();
    busy_ = false;
    if (!done && !failed_) failed_ = std::move(done).error();
  }
}

result<void> host_stream::put(host_job job) {
  {
    std::lock_guard const lock(guard_);
    if (capture_) {
      capture_->add(branch_, {.job = std::move(job)});
      return {};
    }
    if (by_ == host_worker::own_thread) {
      if (failed_) return *failed_;
      push({.job = std::move(job)});
      return {};
    }
  }
  return job();
}

void host_stream::record(host_event& e) {
  std::lock_guard const lock(guard_);
  std::lock_guard const changing(e.guard_);
  e.in_a_graph_ = capture_ != nullptr;
  if (capture_) {
    e.captured_in_ = capture_;
    e.signal_ = capture_->new_signal();
    return capture_->add(branch_, {.says = static_cast<std::ptrdiff_t>(e.signal_)});
  }
  e.captured_in_.reset();
  std::uint64_t const turn = ++e.recorded_;
  if (by_ == host_worker::caller) return e.count_->reach(turn);
  push({.job = [count = e.count_, turn]() -> result<void> {
          count->reach(turn);
          return {};
        },
        .always = true});
}

result<void> host_stream::wait_for(host_event& e) {
  std::unique_lock lock(guard_);
  std::unique_lock changing(e.guard_);
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
  if (e.in_a_graph_) return host_event::is_in_a_graph();
  auto const wait = [count = e.count_, turn = e.recorded_] { return count->wait_until(turn); };
  changing.unlock();
  if (by_ == host_worker::own_thread) {
    push({.job = wait, .always = true});
    return {};
  }
  lock.unlock();
  return wait();
}

result<bool> host_stream::is_done() {
  std::lock_guard const lock(guard_);
  if (failed_) return *failed_;
  return waiting_ == 0 && !busy_;
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

result<void> host_stream::launch(std::shared_ptr<host_graph> g) {
  {
    std::lock_guard const lock(guard_);
    if (capture_)
      return fail(error_code::invalid_state, "a graph cannot be launched within a capture");
  }
  return put([graph = std::move(g)] { return graph->run(); });
}

}  // namespace ferry
