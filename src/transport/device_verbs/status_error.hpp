// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// What a NIC's status is to the rest of ferry.
#pragma once

#include <ferry/base/result.hpp>
#include <ferry/transport/device_verbs/queue_pair.hpp>

namespace ferry::device_verbs {

/// The status's name as it stands in queue_pair.hpp.
char const* to_string(nic_status status);

/// The error of a queue to `rank` that failed so: unreachable where the peer does not answer, else
/// transport.
error error_of(nic_status status, int rank);

}  // namespace ferry::device_verbs
