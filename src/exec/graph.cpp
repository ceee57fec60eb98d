// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/exec/graph.hpp>

#include "base/fail.hpp"
#include "exec/capture_members.hpp"
#include "exec/device_backend.hpp"

#include <exception>
#include <utility>
#include <vector>

namespace ferry {

struct graph::state {
  explicit state(device on) : where(std::move(on)) {}
  ~state() {
    device::state const& about = where.about();
    if (handle) static_cast<void>(about.backend->destroy_graph(about.ordinal, handle));
  }
  state(state const&) = delete;

  device where;
  void* handle = nullptr;
};

namespace {

/// The capture that this thread is in; captures do not nest.
class capture_in_progress {
 public:
  capture_in_progress() { current() = this; }
  ~capture_in_progress() { current() = nullptr; }
  capture_in_progress(capture_in_progress const&) = delete;

  static capture_in_progress*& current() {
    static thread_local capture_in_progress* one = nullptr;
    return one;
  }

  /// Asks every member, and tells all when it comes to nothing.
  result<void> end(result<void> outcome) {
    for (auto const& [who, member] : members)
      if (outcome) outcome = member(true);
    if (!outcome)
      for (auto const& [who, member] : members) static_cast<void>(member(false));
    return outcome;
  }

  std::vector<std::pair<void const*, capture_member>> members;
};

result<void> call(std::function<result<void>()> const& work) {
  try {
    return work();
  } catch (std::exception const& e) {
    return fail(error_code::invalid_state, "the captured work threw: {}", e.what());
  }
}

}  // namespace

bool in_capture() {
  return capture_in_progress::current() != nullptr;
}

bool has_joined_capture(void const* who) {
  for (auto const& member : capture_in_progress::current()->members)
    if (member.first == who) return true;
  return false;
}

void join_capture(void const* who, capture_member member) {
  capture_in_progress::current()->members.emplace_back(who, std::move(member));
}

result<graph> capture(queue& q, std::function<result<void>()> const& work) {
  device::state const& on = q.where().about();
  if (!on.backend) return fail(error_code::unsupported, "a CPU queue cannot be captured");
  if (in_capture())
    return fail(error_code::invalid_state,
                "this thread is capturing already; captures do not nest");
  FERRY_CHECK(to_result(on.backend->begin_capture(on.ordinal, q.stream())));
  capture_in_progress now;
  result<void> worked = call(work);
  graph made;
  made.state_ = std::make_shared<graph::state>(q.where());
  // Ended in any case: a queue that stays captured runs nothing.
  result<void> const ended =
      to_result(on.backend->end_capture(on.ordinal, q.stream(), &made.state_->handle));
  FERRY_CHECK(now.end(worked ? ended : worked));
  return made;
}

result<void> graph::launch(queue& q) const {
  if (!(q.where() == state_->where))
    return fail(error_code::invalid_argument, "a graph of {} and a queue of {}",
                state_->where.name(), q.where().name());
  device::state const& on = state_->where.about();
  return to_result(on.backend->launch_graph(on.ordinal, state_->handle, q.stream()));
}

}  // namespace ferry
