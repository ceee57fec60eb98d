// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// What identifies the machine that a rank runs on.
#pragma once

#include <ferry/base/result.hpp>

#include <array>
#include <cstdint>
#include <string>

namespace ferry {

/// The kernel's boot id: equal exactly for processes that run under one kernel, in whatever
/// container, and different after a restart. Host names are neither.
using machine_id = std::array<char, 36>;

/// Errors  io there is no /proc; malformed_input it does not hold a boot id
result<machine_id> this_machine();

/// The network namespace of this process, or 0 where /proc does not tell.
std::uint64_t network_namespace();

/// 128 bits that nobody can guess.
using secret = std::array<std::uint64_t, 2>;
result<secret> fresh_secret();
/// Takes as long for any two secrets.
bool equal(secret const& a, secret const& b);
std::string to_hex(secret const& s);

}  // namespace ferry
