// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/exec/queue.hpp>

#include "base/fail.hpp"
#include "exec/capture_record.hpp"
#include "exec/device_backend.hpp"
#include "exec/emulated/emulated_backend.hpp"
#include "exec/queue_stream.hpp"

#include <ferry/exec/cpu/cpu_executor.hpp>

#include <algorithm>
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

namespace {

result<void> check_teams(int teams) {
  if (teams >= 1 && teams <= 256) return {};
  return fail(error_code::invalid_argument, "a CPU queue of {} teams; 1 to 256 are possible",
              teams);
}

}  // namespace

queue::queue() : host_(std::make_shared<host_state>(1, host_worker::caller)) {}

result<queue> queue::cpu(int teams) {
  FERRY_CHECK(check_teams(teams));
  queue q;
  if (teams == 1) return q;
  try {
    q.host_ = std::make_shared<host_state>(teams, host_worker::caller);
  } catch (std::exception const& e) {
    return fail(error_code::out_of_memory, "cannot start {} threads: {}", teams - 1, e.what());
  }
  return q;
}

result<queue> queue::cpu_stream(int teams) {
  FERRY_CHECK(check_teams(teams));
  queue q;
  try {
    q.host_ = std::make_shared<host_state>(teams, host_worker::own_thread);
  } catch (std::exception const& e) {
    return fail(error_code::out_of_memory, "cannot start {} threads: {}", teams, e.what());
  }
  return q;
}

result<queue> queue::on(device const& where) {
  queue q;
  device::state const& about = where.about();
  if (!about.backend) return q;
  void* stream = nullptr;
  FERRY_CHECK(to_result(about.backend->make_stream(about.ordinal, &stream)));
  q.host_ = nullptr;
  q.stream_ = std::make_shared<stream_state>(where, stream, true);
  return q;
}

result<queue> queue::wrap(device const& where, void* stream) {
  if (where.kind() == device_kind::cpu || where.kind() == device_kind::emulated)
    return fail(error_code::invalid_argument, "{} has no streams of a vendor to wrap",
                where.name());
  queue q;
  q.host_ = nullptr;
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

cpu_executor& queue::executor() const {
  return host_->executor;
}

int queue::teams() const {
  return host_ ? host_->executor.teams() : 0;
}

bool queue::is_asynchronous() const {
  return !host_ || host_->stream.has_own_thread();
}

result<bool> queue::is_capturing() const {
  if (host_) return host_->stream.is_capturing();
  device::state const& on = where().about();
  bool capturing = false;
  FERRY_CHECK(to_result(on.backend->is_capturing(on.ordinal, stream(), &capturing)));
  return capturing;
}

result<void> queue::run(std::function<result<void>()> work) {
  bool const emulated = where().kind() == device_kind::emulated;
  if (!host_ && !emulated)
    return fail(error_code::unsupported, "a queue of {} calls no functions of the host",
                where().name());
  FERRY_CHECK(capture_record::allows(*this));
  host_stream& on = host_ ? host_->stream : emulated_stream(stream());
  return on.put([call = std::move(work)]() -> result<void> {
    try {
      return call();
    } catch (std::exception const& e) {
      return fail(error_code::invalid_state, "work on a queue threw: {}", e.what());
    }
  });
}

result<void> queue::copy(void* to, void const* from, std::size_t bytes) {
  FERRY_CHECK(capture_record::allows(*this));
  if (bytes == 0) return {};
  device::state const& on = where().about();
  if (on.backend) return to_result(on.backend->copy(on.ordinal, stream(), to, from, bytes));
  return host_->stream.put([=]() -> result<void> {
    std::memmove(to, from, bytes);
    return {};
  });
}

result<void> queue::fill(void* to, std::byte value, std::size_t bytes) {
  FERRY_CHECK(capture_record::allows(*this));
  if (bytes == 0) return {};
  device::state const& on = where().about();
  if (on.backend)
    return to_result(
        on.backend->fill(on.ordinal, stream(), to, std::to_integer<int>(value), bytes));
  return host_->stream.put([=]() -> result<void> {
    std::memset(to, std::to_integer<int>(value), bytes);
    return {};
  });
}

namespace {

// A vendor's runtime would break the capture off if it were asked.
result<void> not_captured(queue const& q) {
  FERRY_CHECK(capture_record::refuses("a wait for a queue"));
  FERRY_TRY(bool const capturing, q.is_capturing());
  if (capturing)
    return fail(error_code::invalid_state, "a queue cannot be waited for while it is captured");
  return {};
}

}  // namespace

result<bool> queue::done() const {
  FERRY_CHECK(not_captured(*this));
  if (host_) return host_->stream.is_done();
  device::state const& on = where().about();
  bool is_done = true;
  FERRY_CHECK(to_result(on.backend->stream_done(on.ordinal, stream(), &is_done)));
  return is_done;
}

result<void> queue::wait(std::chrono::milliseconds longest) const {
  using clock = std::chrono::steady_clock;
  FERRY_CHECK(not_captured(*this));
  auto const start = clock::now();
  auto const end = start + longest;
  for (int turn = 0;; ++turn) {
    FERRY_TRY(bool const over, done());
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
