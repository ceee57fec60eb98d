// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Loads as an exchange has counted them.
#pragma once

#include <ferry/balance/placement.hpp>
#include <ferry/balance/routing_trace.hpp>
#include <ferry/base/result.hpp>
#include <ferry/exchange.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace ferry {

/// What was counted between two readings, on all ranks together.
struct counted_loads {
  int num_layers = 0;
  int num_ranks = 1;
  std::vector<std::int64_t> experts;  ///< [layers, experts] choices that named each
  std::vector<std::int64_t> ranks;    ///< [layers, ranks] choices that each rank served

  std::int64_t choices() const;
  /// The busiest rank over the mean in each layer that saw choices: their mean; 1 where none did.
  double max_over_mean() const;
  /// The largest of them.
  double worst() const;
};

/// What `counted_loads::max_over_mean` would be on average with every expert equally likely and
/// every rank's share even, by chance alone. `tokens` in all steps of the reading; as
/// sampling_floor, from which longer readings are extrapolated.
/// Errors   those of sampling_floor
result<double> floor_of(std::int64_t tokens, int topk, int num_experts, int num_ranks);

/// Reads the counters of an exchange; every reading begins where the last one ended.
class load_meter {
 public:
  /// What was counted before is left out.
  /// Errors   those of exchange::slot_loads
  static result<load_meter> make(exchange const& of);

  /// Brings all ranks' counts together, by the expert that `where` says each slot held. Collective.
  /// Lifetime the exchange must be the one that the meter was made for
  /// Errors   invalid_argument a placement that does not fit; those of exchange::slot_loads and
  ///          group::all_gather
  result<counted_loads> read(exchange const& of, placement const& where);

 private:
  std::vector<std::uint64_t> before_;
};

/// Offers the tokens that an exchange sampled since the last call, in the last step of each of its
/// slots, to a sampler: those that chose an expert. Slots that held other layers of a step than
/// those before them, as where layers take turns, are taken for the same tokens.
/// Order    all that was put on queues has run
/// Errors   those of exchange::sampled_choices and trace_sampler::offer
result<void> offer_samples(exchange const& of, trace_sampler& to);
/// To several samplers, each of which sees all of them.
result<void> offer_samples(exchange const& of, std::span<trace_sampler* const> to);

/// The samples of all ranks, in rank order; of no tokens where there are none. Collective.
/// Errors   those of group::all_gather; internal samples of other sizes
result<routing_trace> gather_samples(group const& ranks, routing_trace const& mine);

}  // namespace ferry
