// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Where work is put, to be done in order.
#pragma once

#include <ferry/base/result.hpp>

#include <memory>

namespace ferry {

class cpu_executor;

/// Work in order on one device. A CPU queue runs each call on the calling thread (plus the other
/// teams of its executor) before the call returns.
/// Lifetime  copies are the same queue
class queue {
 public:
  /// A CPU queue of one team: the calling thread.
  queue();
  /// A CPU queue of `teams` threads, the calling one included.
  /// Errors   invalid_argument teams < 1 or > 256
  static result<queue> cpu(int teams);

  cpu_executor& executor() const { return *executor_; }
  int teams() const;

 private:
  std::shared_ptr<cpu_executor> executor_;
};

}  // namespace ferry
