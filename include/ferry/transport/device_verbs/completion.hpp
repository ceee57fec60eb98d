// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// What a completion queue entry says, after it lost its vendor's form.
#pragma once

#include <ferry/transport/device_verbs/queue_pair.hpp>

#include <cstdint>

namespace ferry::device_verbs {

struct completion {
  bool there = false;  ///< the NIC has written the entry in this round
  nic_status status = nic_status::ok;
  /// Entries done so far, all together, of which only the bits in `counted` are known.
  std::uint32_t done = 0;
  std::uint32_t counted = 0;
};

}  // namespace ferry::device_verbs
