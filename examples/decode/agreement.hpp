// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Whether all ranks were started for the same run.
#pragma once

#include "options.hpp"

#include <ferry/ferry.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ferry::decode {

/// What must be the same on all ranks. Steps are collective and rows travel between the ranks, so
/// that a difference would give a wrong text, or none, on all of them.
struct setting {
  std::string name;   ///< as a person knows it
  std::string value;  ///< compared
  bool shown = true;  ///< in the message, too: not for a fingerprint, which tells nobody anything
};

/// FNV-1a with 64 bits, as hexadecimal digits.
std::string fingerprint(std::span<std::byte const> content);
std::string fingerprint(std::string_view content);

/// The settings that the command line decides.
std::vector<setting> settings_of(options const& o,
                                 std::span<std::vector<std::int32_t> const> prompts);

/// Collective.
/// Errors   invalid_argument, on all ranks alike, naming the first rank that differs from rank 0,
///          and in what; malformed_input a rank says something else; those of all_gather
result<void> check_agreement(group const& ranks, std::span<setting const> mine);

}  // namespace ferry::decode
