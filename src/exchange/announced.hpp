// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// What ranks say of themselves before they exchange anything.
#pragma once

#include <ferry/exec/device.hpp>
#include <ferry/group.hpp>
#include <ferry/options.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ferry {

/// The codes that a rank reads: `either` takes what it is given, which is OCP where nothing asks
/// for the other.
enum class fp8_code : std::uint8_t { either, ocp, fnuz };

/// One rank's announcement. Its numbers also tell the order of their bytes.
struct announced {
  device_kind kind;
  int lanes;  ///< of a team
  fp8_code fp8;
};

/// What a device reads, or is told to.
fp8_code flavour_of(device const& where, fp8_flavour wanted);

bytes packed(announced const& rank);

/// What rank `rank` says to rank `reader`.
/// Errors   unsupported its numbers have another byte order, or one of them is none that is known
result<announced> unpacked(std::span<std::byte const> from, int rank, int reader);

/// Tells all ranks what this one is. Collective.
/// Errors   those of unpacked(), and of the group
result<std::vector<announced>> announce(group const& ranks, announced const& mine);

/// Whether such ranks can exchange rows with these options: the same on all of them, but for which
/// of two ranks `reader` names first.
/// Errors   invalid_argument two ranks are on different kinds of devices; unsupported one cannot
///          read the codes that the others send
result<void> check_announced(std::span<announced const> all, exchange_options const& options,
                             int reader);

}  // namespace ferry
