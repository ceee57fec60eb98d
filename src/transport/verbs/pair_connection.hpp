// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// How the two ends of a reliable connection learn of each other.
#pragma once

#include <ferry/base/result.hpp>

#include "transport/verbs/verbs_device.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ferry {

/// A queue pair as its peer must know it. All ranks are little-endian.
struct pair_endpoint {
  std::uint32_t number;
  std::uint32_t lid;
  std::uint32_t mtu;
  std::uint32_t answers_at_once;  ///< reads and atomics
  std::uint8_t gid[16];
  std::uint32_t has_atomics;  ///< 1: it carries out atomics on this side's memory
};
static_assert(sizeof(pair_endpoint) == 36);

/// What the peer needs to connect to it.
std::vector<std::byte> endpoint_of(verbs_device const& device, verbs_options const& options,
                                   ibv_qp const& pair);

/// Errors   malformed_input it is no endpoint, with the value and its limits
result<pair_endpoint> read_endpoint(std::span<std::byte const> bytes);

/// Makes a queue pair as it was when it was new.
/// Errors   transport the device refuses, as all below
result<void> reset_pair(verbs_device const& device, ibv_qp* pair);
/// Connects one that is new. Packets are counted from 0 on both sides.
result<void> connect_pair(verbs_device const& device, verbs_options const& options, ibv_qp* pair,
                          pair_endpoint const& to);

}  // namespace ferry
