// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Threads that run one at a time, in an order that a seed decides.
#pragma once

#include "protocol/chance.hpp"
#include "protocol/slow_memory.hpp"

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace ferry::protocol_test {

/// Hands a baton from agent to agent at the points where they say so, and moves the memory on in
/// between. Nothing depends on time, so a seed replays a run. When no agent can go on and the
/// memory is at rest, the run is stuck, which ends it.
class schedule {
 public:
  schedule(int agents, slow_memory& memory, std::uint64_t seed)
      : memory_(memory), random_(seed), agents_(static_cast<std::size_t>(agents)) {
    for (agent& a : agents_) a.weight = 8;
    // One starved agent: only that shows a sender that runs ahead of its credit.
    if (random_.once_in(2)) agents_[static_cast<std::size_t>(random_.below(agents))].weight = 1;
    rarity_ = 1 + random_.below(4);
  }

  /// Calls work(i) for every agent, each on a thread of its own; returns when all are done.
  void run(std::function<void(int)> const& work) {
    std::vector<std::thread> threads;
    for (int i = 0; i < static_cast<int>(agents_.size()); ++i)
      threads.emplace_back([this, &work, i] {
        wait_for_baton(i);
        work(i);
        agents_[static_cast<std::size_t>(i)].finished = true;
        pass_baton(choose());
      });
    pass_baton(choose());
    for (std::thread& t : threads) t.join();
  }

  /// A point at which another agent may take over and stores may become visible.
  void pause() {
    if (random_.once_in(rarity_))
      hand_over();
    else
      memory_.move_some();
  }

  /// Lets others run until ready() holds. False when the run was stopped instead.
  bool wait_until(std::function<bool()> const& ready, std::function<std::string()> const& what) {
    wait(ready, what, false);
    return !stopped_;
  }
  /// The same, but waits on in a run that was stopped.
  void wait_through(std::function<bool()> const& ready, std::function<std::string()> const& what) {
    wait(ready, what, true);
  }

  /// Ends all waits. Every agent is to leave.
  void stop() { stopped_ = true; }
  bool stopped() const { return stopped_; }
  /// What each agent waited for, if the run got stuck.
  std::string const& stuck() const { return stuck_; }

 private:
  struct agent {
    std::condition_variable baton;
    std::function<bool()> const* ready = nullptr;
    std::function<std::string()> const* what = nullptr;
    bool through = false;
    bool finished = false;
    int weight = 1;
  };
  static constexpr int nobody = -1;

  void wait(std::function<bool()> const& ready, std::function<std::string()> const& what,
            bool through) {
    agent& me = agents_[static_cast<std::size_t>(turn_)];
    me.ready = &ready;
    me.what = &what;
    me.through = through;
    hand_over();
    me.ready = nullptr;
  }

  void hand_over() {
    int const me = turn_;
    int const next = choose();
    if (next == me) return;
    pass_baton(next);
    wait_for_baton(me);
  }
  void pass_baton(int to) {
    std::lock_guard lock(mutex_);
    turn_ = to;
    if (to != nobody) agents_[static_cast<std::size_t>(to)].baton.notify_one();
  }
  void wait_for_baton(int me) {
    std::unique_lock lock(mutex_);
    agents_[static_cast<std::size_t>(me)].baton.wait(lock, [&] { return turn_ == me; });
  }

  bool can_run(agent const& a) const {
    if (a.finished) return false;
    return !a.ready || (stopped_ && !a.through) || (*a.ready)();
  }

  int choose() {
    for (;;) {
      if (!stopped_) memory_.move_some();
      int all = 0;
      bool finished = true;
      for (agent& a : agents_) {
        finished = finished && a.finished;
        all += can_run(a) ? a.weight : 0;
      }
      if (finished) return nobody;
      if (all > 0) return pick(random_.below(all));
      if (memory_.idle())
        say_stuck();
      else
        memory_.move_one();
    }
  }
  int pick(int left) {
    for (std::size_t i = 0; i < agents_.size(); ++i) {
      if (!can_run(agents_[i])) continue;
      left -= agents_[i].weight;
      if (left < 0) return static_cast<int>(i);
    }
    return nobody;
  }
  void say_stuck() {
    for (agent const& a : agents_)
      if (!a.finished) stuck_ += (stuck_.empty() ? "" : "; ") + (*a.what)();
    stopped_ = true;
  }

  slow_memory& memory_;
  chance random_;
  std::deque<agent> agents_;
  std::mutex mutex_;
  int turn_ = nobody;
  int rarity_ = 1;
  bool stopped_ = false;
  std::string stuck_;
};

}  // namespace ferry::protocol_test
