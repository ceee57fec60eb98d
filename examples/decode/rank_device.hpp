// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Which device a rank computes on.
#pragma once

#include <ferry/exec/device.hpp>

#include <string>

namespace ferry::decode {

/// The device that `name` asks for. A vendor's name without a number gives the ranks its devices in
/// turn; no name gives the best that is there: hip, cuda, else the CPU.
/// Errors   those of device::open
result<device> device_of_rank(std::string const& name, int rank);

}  // namespace ferry::decode
