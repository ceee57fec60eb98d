// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/exec/graph.hpp>

#include "base/fail.hpp"
#include "exec/capture_record.hpp"
#include "exec/device_backend.hpp"
#include "exec/queue_stream.hpp"

#include <exception>
#include <vector>

namespace ferry {

struct graph::state {
  explicit state(device on) : where(std::move(on)) {}
  ~state() {
    device::state const& about = where.about();
    if (handle) static_cast<void>(about.backend->destroy_graph(about.ordinal, handle));
  }
  state(state const&) = delete;

  result<void> begin(queue& q) {
    if (!where.about().backend) return q.on_host().stream.begin_capture();
    return to_result(where.about().backend->begin_capture(where.ordinal(), q.stream()));
  }
  result<void> end(queue& q) {
    if (where.about().backend)
      return to_result(where.about().backend->end_capture(where.ordinal(), q.stream(), &handle));
    FERRY_TRY(on_host, q.on_host().stream.end_capture());
    return {};
  }

  device where;
  void* handle = nullptr;               ///< on other devices
  std::shared_ptr<host_graph> on_host;  ///< on the CPU
  std::vector<capture_member*> members;
};

namespace {

thread_local capture_record* joined_by_this_thread = nullptr;

result<void> call(std::function<result<void>()> const& work) {
  try {
    return work();
  } catch (std::exception const& e) {
    return fail(error_code::invalid_state, "the captured work threw: {}", e.what());
  }
}

// Elsewhere an engine may capture its own stream, by the vendor's means.
bool runs_on_host(queue const& q) {
  device_kind const kind = q.where().kind();
  return kind == device_kind::cpu || kind == device_kind::emulated;
}

}  // namespace

capture_record* capture_record::current() {
  return joined_by_this_thread;
}

result<bool> capture_record::takes(queue const& q) {
  FERRY_TRY(bool const capturing, q.is_capturing());
  if (capturing == (current() != nullptr)) return capturing;
  if (!capturing)
    return fail(error_code::invalid_state,
                "a call within a capture on a queue of {} outside of it, which no replay would "
                "repeat: let the queue wait for an event of the capture first",
                q.where().name());
  if (!runs_on_host(q)) return true;
  return fail(error_code::invalid_state,
              "a queue of {} is being captured by another thread than the one that calls",
              q.where().name());
}

result<void> capture_record::allows(queue const& q) {
  if (!current() && !runs_on_host(q)) return {};
  FERRY_CHECK(takes(q));
  return {};
}

result<void> capture_record::refuses(char const* what) {
  if (!current()) return {};
  return fail(error_code::invalid_state, "{} cannot be captured: a replay would not repeat it",
              what);
}

capture_record::scope::scope(capture_record* joined) : before_(joined_by_this_thread) {
  joined_by_this_thread = joined;
}

capture_record::scope::~scope() {
  joined_by_this_thread = before_;
}

result<graph> capture(queue& q, std::function<result<void>()> const& work) {
  FERRY_CHECK(capture_record::refuses("a capture"));
  graph made;
  made.state_ = std::make_shared<graph::state>(q.where());
  FERRY_CHECK(made.state_->begin(q));
  capture_record record;
  result<void> const worked = [&] {
    capture_record::scope const joined(&record);
    return call(work);
  }();
  result<void> const whole = record.is_whole();
  // Ended in any case: a queue that stays captured runs nothing.
  result<void> const ended = made.state_->end(q);
  for (result<void> const* const step : {&worked, &whole, &ended}) {
    if (*step) continue;
    record.forget();
    return step->error();
  }
  made.state_->members = record.take_members();
  return made;
}

result<void> graph::launch(queue& q) const {
  if (!(q.where() == state_->where))
    return fail(error_code::invalid_argument, "a graph of {} and a queue of {}",
                state_->where.name(), q.where().name());
  FERRY_TRY(bool const capturing, q.is_capturing());
  if (capturing || capture_record::current())
    return fail(error_code::invalid_state, "a graph cannot be launched within a capture");
  for (capture_member* const m : state_->members) FERRY_CHECK(m->may_launch(q));
  if (state_->on_host) return q.on_host().stream.launch(state_->on_host);
  device::state const& on = state_->where.about();
  return to_result(on.backend->launch_graph(on.ordinal, state_->handle, q.stream()));
}

}  // namespace ferry
