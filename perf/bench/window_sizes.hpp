// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Bytes that ferry keeps for its peers, beside those of DeepEP's low-latency mode.
#pragma once

#include "report.hpp"
#include "settings.hpp"

namespace ferry::bench {

/// Bytes of DeepEP's low-latency buffer on one rank, by its published size hint: two buffers, each
/// with a counter for every expert and room for every rank's tokens at every expert, going and
/// coming.
/// Units   experts of the whole group, tokens of one rank
std::uint64_t deepep_low_latency_bytes(std::uint64_t experts, std::uint64_t tokens,
                                       std::uint64_t hidden);

/// Prints a line for each case, and a JSON object each into the file, if there is one.
/// Errors   invalid_argument, io
result<void> print_sizes(settings const& s, int ranks);

}  // namespace ferry::bench
