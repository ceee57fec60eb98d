// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// What became of the work that calls have put on queues which run by themselves.

#include "base/fail.hpp"
#include "exchange/exchange_state.hpp"
#include "exchange/tensor_checks.hpp"

#include <array>
#include <cstring>
#include <thread>

namespace ferry {
namespace {

using clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds between_looks{50};

// Nothing can be trusted after it; peers see that this rank is gone or silent.
error broken_by(exchange_core const& core, error why, int blamed = -1) {
  core.ranks.mark_broken(why, blamed);
  return why;
}

}  // namespace

microbatch::state::~state() {
  // What is still on the queue uses this slot's memory. It ends by itself at its deadline.
  capture_record::scope const apart(nullptr);
  if (last_queue) static_cast<void>(last_queue->wait(2 * core.timeout()));
}

result<void> microbatch::state::failure_so_far() const {
  if (!core.on_device->told()) return {};
  result<failure> const cause = cause_on_device(core);
  return cause ? broken_by(core, explain(core, *cause), cause->rank)
               : broken_by(core, cause.error());
}

result<void> microbatch::state::wait_on_device(queue& q) {
  device_rank const& rank = *core.on_device;
  auto const end = clock::now() + 2 * core.timeout();
  for (;;) {
    result<void> const done = q.wait(between_looks);
    if (done) break;
    if (done.error().code == error_code::invalid_state) return done;
    if (done.error().code != error_code::timeout) return broken_by(core, done.error());
    if (int const gone = gone_peer(core); gone >= 0 && !rank.told()) {
      // Its words will not come: kernels need not wait for their deadline to learn that.
      FERRY_CHECK(rank.give_up());
      static_cast<void>(q.wait(core.timeout()));
      return broken_by(core, fail(error_code::unreachable,
                                  "rank {} is gone: its process ended (slot "
                                  "{} of rank {} waited for it)",
                                  gone, slot, core.shape.rank));
    }
    if (clock::now() >= end)
      return fail(error_code::timeout, "the calls of slot {} on {} are not done after {} ms", slot,
                  core.where.name(), 2 * core.timeout().count());
  }
  FERRY_CHECK(failure_so_far());
  return report_cuts();
}

// On the CPU every job says itself how it went, and the queue keeps the first failure.
result<void> microbatch::state::wait_on_cpu(queue& q) {
  FERRY_CHECK(q.wait(2 * core.timeout()));
  return report_cuts();
}

result<void> microbatch::state::read(void* to, void const* from, std::size_t bytes) const {
  if (core.on_device) return core.on_device->read(to, from, bytes);
  std::memcpy(to, from, bytes);
  return {};
}

result<void> microbatch::state::report_cuts() {
  step_memory const& m = frame.memory;
  std::array<std::uint64_t, static_cast<std::size_t>(tally::count_)> tallies;
  FERRY_CHECK(read(tallies.data(), m.tallies, sizeof tallies));
  std::uint64_t const misstated = tallies[static_cast<std::size_t>(tally::tokens_misstated)];
  std::uint64_t const no_room = tallies[static_cast<std::size_t>(tally::rows_without_room)];
  std::uint64_t const new_misstated = misstated - std::exchange(told_misstated, misstated);
  std::uint64_t const new_no_room = no_room - std::exchange(told_without_room, no_room);
  if (new_misstated)
    return fail(error_code::invalid_argument,
                "num_tokens in memory was out of range in {} step(s) of slot {}; it may be 0 "
                "to the rows of tokens and options.max_tokens {}, and was cut to that",
                new_misstated, slot, core.options.max_tokens);
  if (!new_no_room) return {};
  // The open step's numbers, or the last one's.
  auto const experts = static_cast<std::size_t>(frame.shape.local_experts(frame.shape.rank));
  std::vector<std::int32_t> counts(experts), wanted(experts);
  FERRY_CHECK(read(counts.data(), m.counts, experts * sizeof counts[0]));
  FERRY_CHECK(read(wanted.data(), m.wanted, experts * sizeof wanted[0]));
  FERRY_CHECK(check_capacity(frame, counts.data(), wanted.data()));
  return fail(error_code::capacity,
              "{} rows found no room (options.capacity {}) in earlier steps of slot {}",
              new_no_room, core.options.capacity, slot);
}

}  // namespace ferry
