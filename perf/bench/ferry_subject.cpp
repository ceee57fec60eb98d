// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "ferry_subject.hpp"

#include "start_line.hpp"

#include <utility>

namespace ferry::bench {

ferry_subject::ferry_subject(workload const& work, exchange& ep, cpu_executor& threads)
    : work_(work),
      ep_(ep),
      threads_(threads),
      queues_(static_cast<std::size_t>(work.of().queues)),
      parts_{{"dispatch_send", {}},
             {"dispatch_receive", {}},
             {"combine_send", {}},
             {"combine_receive", {}}} {}

result<void> ferry_subject::call(part p, int iteration, int slot) {
  microbatch& at = ep_.microbatch(slot);
  queue& q = queues_[static_cast<std::size_t>(slot % work_.of().queues)];
  switch (p) {
    case send: return at.dispatch_send(q, work_.input(iteration, slot));
    case receive: {
      result<received> const got = at.dispatch_receive(q);
      return got ? result<void>{} : result<void>{got.error()};
    }
    case give_back:
      if (work_.of().results == result_rows::summed)
        return at.combine_send(q, token_sums{work_.results(iteration, slot)});
      return at.combine_send(q, work_.results(iteration, slot));
    default: return at.combine_receive(q, work_.output(iteration, slot));
  }
}

result<void> ferry_subject::timed(part p, int iteration) {
  std::int64_t const start = nanoseconds_now();
  FERRY_CHECK(for_each_slot(threads_, work_.of().slots,
                            [&](int slot) { return call(p, iteration, slot); }));
  parts_[static_cast<std::size_t>(p)].nanoseconds.push_back(nanoseconds_now() - start);
  return {};
}

result<void> ferry_subject::before(int iteration) {
  if (work_.of().op != operation::combine) return {};
  for (part p : {send, receive})
    FERRY_CHECK(for_each_slot(threads_, work_.of().slots,
                              [&](int slot) { return call(p, iteration, slot); }));
  return {};
}

result<void> ferry_subject::run(int iteration) {
  if (work_.of().op != operation::combine)
    for (part p : {send, receive}) FERRY_CHECK(timed(p, iteration));
  if (work_.of().op != operation::dispatch)
    for (part p : {give_back, gather}) FERRY_CHECK(timed(p, iteration));
  return {};
}

result<void> ferry_subject::after(int) {
  if (work_.of().op != operation::dispatch) return {};
  return for_each_slot(threads_, work_.of().slots, [&](int slot) {
    return ep_.microbatch(slot).release(
        queues_[static_cast<std::size_t>(slot % work_.of().queues)]);
  });
}

result<void> ferry_subject::check(int iteration) const {
  if (work_.of().op == operation::dispatch) return {};
  for (int slot = 0; slot < work_.of().slots; ++slot)
    FERRY_CHECK(work_.check_output(work_.output(iteration, slot).data, "ferry"));
  return {};
}

std::vector<part_times> ferry_subject::take_parts() {
  std::vector<part_times> taken;
  for (part_times& p : parts_) {
    taken.push_back({p.name, std::exchange(p.nanoseconds, {})});
  }
  return taken;
}

}  // namespace ferry::bench
