// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The numbers of a run, from all ranks, as table and as JSON.
#pragma once

#include "balancing.hpp"
#include "decoder.hpp"
#include "options.hpp"

#include <ferry/deepseek/tokenizer.hpp>
#include <ferry/ferry.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace ferry::decode {

/// What a rank adds to the report.
struct contribution {
  std::vector<std::size_t> prompts = {};                   ///< index of each
  std::vector<std::vector<std::int32_t>> new_tokens = {};  ///< of each
  std::vector<std::uint64_t> digests = {};                 ///< of each one's logits
  phase_numbers prefilled, decoded;
  std::vector<step_time> steps;
  exchange_counters traffic;
  balance_report balance = {};
};

struct percentiles {
  double p50 = 0, p90 = 0, p99 = 0;  ///< milliseconds
};

/// Of the time between a token and the one before it, over all tokens of all ranks.
percentiles inter_token_latency(std::vector<step_time> steps);

struct report {
  std::vector<std::vector<std::int32_t>> tokens;  ///< new ones, by prompt
  std::vector<std::string> texts;                 ///< of these; none without a tokenizer
  std::vector<std::uint64_t> digests;             ///< of the logits, by prompt
  phase_numbers prefilled, decoded;               ///< all ranks' tokens, the slowest one's seconds
  percentiles latency;
  std::uint64_t dispatch_bytes = 0, dispatch_self_bytes = 0;
  std::uint64_t combine_bytes = 0, combine_self_bytes = 0;
  int overlapped_steps = 0;                ///< of decode, that ran as several microbatches
  std::vector<std::uint64_t> expert_load;  ///< rows that each rank's experts worked on
  balance_report balance;                  ///< of the decode steps; what all ranks have moved

  double decode_tokens_per_second() const;
  double load_max_over_mean() const;
};

/// Brings all ranks' contributions to rank 0; on the others the result is an empty report.
/// Collective.
result<report> gather(group const& ranks, contribution const& mine);

void print_table(report const& r);
/// Whether a file can be written there, found out before the work and not after.
/// Errors   io
result<void> check_writable(std::filesystem::path const& file);
result<void> write_json(report const& r, options const& o, int num_ranks);

}  // namespace ferry::decode
