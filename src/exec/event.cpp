// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/exec/event.hpp>

#include "base/fail.hpp"
#include "exec/capture_record.hpp"
#include "exec/device_backend.hpp"
#include "exec/queue_stream.hpp"

#include <atomic>

namespace ferry {

struct event::state {
  explicit state(device on) : where(std::move(on)) {}
  ~state() {
    device::state const& about = where.about();
    if (handle) static_cast<void>(about.backend->destroy_event(about.ordinal, handle));
  }
  state(state const&) = delete;

  result<device_backend const*> backend_for(queue const& q) const {
    if (q.where() == where) return where.about().backend;
    return fail(error_code::invalid_argument, "an event of {} and a queue of {}", where.name(),
                q.where().name());
  }

  // A vendor's runtime would break the capture off, and say so at its end.
  result<void> may_hold(queue const& q) const {
    if (!capture_record::current() || captured) return {};
    FERRY_TRY(bool const capturing, q.is_capturing());
    if (!capturing) return {};
    return fail(error_code::invalid_state,
                "a captured queue cannot wait for an event that was recorded outside the capture");
  }

  device where;
  std::atomic<bool> captured = false;  ///< whether it was last recorded in a capture
  void* handle = nullptr;              ///< on other devices
  host_event on_host;                  ///< on the CPU
};

result<event> event::on(device const& where) {
  event made;
  made.state_ = std::make_shared<state>(where);
  device::state const& about = where.about();
  if (about.backend)
    FERRY_CHECK(to_result(about.backend->make_event(about.ordinal, &made.state_->handle)));
  return made;
}

result<void> event::record(queue& q) {
  FERRY_TRY(device_backend const* const backend, state_->backend_for(q));
  FERRY_TRY(state_->captured, capture_record::takes(q));
  if (!backend) {
    q.on_host().stream.record(state_->on_host);
    return {};
  }
  return to_result(backend->record(state_->where.ordinal(), state_->handle, q.stream()));
}

result<void> event::hold(queue& q) const {
  FERRY_TRY(device_backend const* const backend, state_->backend_for(q));
  FERRY_CHECK(state_->may_hold(q));
  FERRY_CHECK(!backend ? q.on_host().stream.wait_for(state_->on_host)
                       : to_result(backend->wait_event(state_->where.ordinal(), q.stream(),
                                                       state_->handle)));
  // An event of the capture has drawn the queue in.
  return capture_record::allows(q);
}

result<bool> event::happened() const {
  device::state const& about = state_->where.about();
  // A vendor's runtime refuses this too, each in its own words.
  if (about.backend && state_->captured)
    return fail(error_code::invalid_state,
                "an event that was last recorded in a capture is a place in its graph: record it "
                "again behind a launch");
  if (!about.backend) return state_->on_host.has_happened();
  bool done = true;
  FERRY_CHECK(to_result(about.backend->event_done(about.ordinal, state_->handle, &done)));
  return done;
}

}  // namespace ferry
