// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/exec/queue.hpp>

#include "base/fail.hpp"

#include <ferry/exec/cpu/cpu_executor.hpp>

#include <exception>

namespace ferry {

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

int queue::teams() const {
  return executor_->teams();
}

}  // namespace ferry
