// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// What a test may ask of the stand-in for an RDMA library (verbs_double.cpp).
#pragma once

#include <atomic>

namespace ferry::test {

/// One for the process. Its NICs carry out each operation while it is posted.
struct verbs_double {
  std::atomic<bool> holds{false};         ///< no operation is reported as complete
  std::atomic<int> ends_with{0};          ///< the ibv_wc_status of what is posted from now on
  std::atomic<int> completion_bytes{64};  ///< of queues that are written directly
  std::atomic<int> vendor{0};             ///< of both NICs
  std::atomic<int> adds{0}, reads{0}, writes{0};  ///< operations that were carried out
};

}  // namespace ferry::test
