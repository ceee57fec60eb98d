// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/exec/graph.hpp>

#include "base/fail.hpp"
#include "exec/device_backend.hpp"

#include <exception>

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

result<void> call(std::function<result<void>()> const& work) {
  try {
    return work();
  } catch (std::exception const& e) {
    return fail(error_code::invalid_state, "the captured work threw: {}", e.what());
  }
}

}  // namespace

result<graph> capture(queue& q, std::function<result<void>()> const& work) {
  device::state const& on = q.where().about();
  if (!on.backend) return fail(error_code::unsupported, "a CPU queue cannot be captured");
  FERRY_CHECK(to_result(on.backend->begin_capture(on.ordinal, q.stream())));
  result<void> const worked = call(work);
  graph made;
  made.state_ = std::make_shared<graph::state>(q.where());
  // Ended in any case: a queue that stays captured runs nothing.
  result<void> const ended =
      to_result(on.backend->end_capture(on.ordinal, q.stream(), &made.state_->handle));
  FERRY_CHECK(worked);
  FERRY_CHECK(ended);
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
