// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// What a case measures: ferry, or something that does the same work.
#pragma once

#include "workload.hpp"

#include <ferry/exec/cpu/cpu_executor.hpp>
#include <ferry/result.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ferry::bench {

/// The time that one part of an operation took, in each measured iteration.
struct part_times {
  std::string name;
  std::vector<std::int64_t> nanoseconds;
};

/// One program on one rank. An iteration is one operation in every slot of the case. All calls are
/// made by all ranks, in the same order.
class subject {
 public:
  virtual ~subject() = default;
  virtual std::string name() const = 0;
  /// What must come before the measured part: the dispatch of a combine.
  virtual result<void> before(int) { return {}; }
  /// The measured part.
  virtual result<void> run(int iteration) = 0;
  /// What must follow: the end of a step.
  virtual result<void> after(int) { return {}; }
  /// Whether what the last iteration left is right.
  virtual result<void> check(int) const { return {}; }
  /// Parts of `run`, longest history first; none where there are none.
  virtual std::vector<part_times> take_parts() { return {}; }
};

/// Calls f(slot) -> result<void> for every slot of a case, queue q's thread taking slots q, q +
/// queues, ... in turn. Returns the error of the lowest slot that has one.
template <class F>
result<void> for_each_slot(cpu_executor& threads, int slots, F const& f) {
  std::vector<result<void>> outcomes(static_cast<std::size_t>(slots));
  auto const work = [&](int first, int step) {
    for (int s = first; s < slots; s += step) {
      outcomes[static_cast<std::size_t>(s)] = f(s);
      if (!outcomes[static_cast<std::size_t>(s)]) return;
    }
  };
  threads.run(work);
  for (result<void> const& outcome : outcomes) FERRY_CHECK(outcome);
  return {};
}

}  // namespace ferry::bench
