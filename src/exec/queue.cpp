// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/exec/queue.hpp>

#include "base/fail.hpp"
#include "exec/device_backend.hpp"
#include "exec/queue_stream.hpp"

#include <ferry/exec/cpu/cpu_executor.hpp>

#include <cstring>
#include <exception>
#include <thread>

namespace ferry {

queue::stream_state::~stream_state() {
  if (!owned) return;
  device::state const& on = where.about();
  // Nobody is left to be told of a failure.
  static_cast<void>(on.backend->destroy_stream(on.ordinal, stream));
}

queue::queue() : executor_(std::make_shared<cpu_executor>(1)) {}

result<queue> queue::cpu(int teams) {
  if (teams < 1 || teams > 256)
    return fail(error_code::invalid_argument, "a CPU queue of {} teams; 1 to 256 are possible",
                teams);
  queue q;
  if (teams == 1) return q;
  try {
    q.executor_ = std::make_shared<cpu_executor>(teams);
  } catch (std::exception const& e) {
    return fail(error_code::out_of_memory, "cannot start {} threads: {}", teams - 1, e.what());
  }
  return q;
}

result<queue> queue::on(device const& where) {
  queue q;
  device::state const& about = where.about();
  if (!about.backend) return q;
  void* stream = nullptr;
  FERRY_CHECK(to_result(about.backend->make_stream(about.ordinal, &stream)));
  q.executor_ = nullptr;
  q.stream_ = std::make_shared<stream_state>(where, stream, true);
  return q;
}

result<queue> queue::wrap(device const& where, void* stream) {
  if (where.kind() == device_kind::cpu || where.kind() == device_kind::emulated)
    return fail(error_code::invalid_argument, "{} has no streams of a vendor to wrap",
                where.name());
  queue q;
  q.executor_ = nullptr;
  q.stream_ = std::make_shared<stream_state>(where, stream, false);
  return q;
}

device const& queue::where() const {
  static device const cpu;
  return stream_ ? stream_->where : cpu;
}

void* queue::stream() const {
  return stream_ ? stream_->stream : nullptr;
}

int queue::teams() const {
  return executor_ ? executor_->teams() : 0;
}

result<void> queue::copy(void* to, void const* from, std::size_t bytes) {
  if (bytes == 0) return {};
  device::state const& on = where().about();
  if (on.backend) return to_result(on.backend->copy(on.ordinal, stream(), to, from, bytes));
  std::memmove(to, from, bytes);
  return {};
}

result<void> queue::fill(void* to, std::byte value, std::size_t bytes) {
  if (bytes == 0) return {};
  device::state const& on = where().about();
  if (on.backend)
    return to_result(
        on.backend->fill(on.ordinal, stream(), to, std::to_integer<int>(value), bytes));
  std::memset(to, std::to_integer<int>(value), bytes);
  return {};
}

namespace {

// A vendor's runtime would break the capture off if it were asked.
result<void> not_captured(queue const& q) {
  device::state const& on = q.where().about();
  bool capturing = false;
  FERRY_CHECK(to_result(on.backend->is_capturing(on.ordinal, q.stream(), &capturing)));
  if (capturing)
    return fail(error_code::invalid_state, "a queue cannot be waited for while it is captured");
  return {};
}

result<bool> is_done(queue const& q) {
  device::state const& on = q.where().about();
  bool done = true;
  FERRY_CHECK(to_result(on.backend->stream_done(on.ordinal, q.stream(), &done)));
  return done;
}

}  // namespace

result<bool> queue::done() const {
  if (!where().about().backend) return true;
  FERRY_CHECK(not_captured(*this));
  return is_done(*this);
}

result<void> queue::wait(std::chrono::milliseconds longest) const {
  using clock = std::chrono::steady_clock;
  if (!where().about().backend) return {};
  FERRY_CHECK(not_captured(*this));
  auto const start = clock::now();
  auto const end = start + longest;
  for (int turn = 0;; ++turn) {
    FERRY_TRY(bool const over, is_done(*this));
    if (over) return {};
    auto const now = clock::now();
    if (now >= end)
      return fail(error_code::timeout, "the work on a queue of {} is not done after {} ms",
                  where().name(), longest.count());
    // Short waits are the usual ones; a long one leaves the core to others.
    if (turn < 100)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::min<clock::duration>(
          end - now, now - start < std::chrono::milliseconds(2) ? std::chrono::microseconds(20)
                                                                : std::chrono::microseconds(200)));
  }
}

}  // namespace ferry
