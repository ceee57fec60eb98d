// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Keeps the ranks equally busy while steps go on.
#pragma once

#include <ferry/balance/expert_store.hpp>
#include <ferry/balance/load_meter.hpp>
#include <ferry/balance/load_window.hpp>
#include <ferry/balance/migrate.hpp>
#include <ferry/balance/place.hpp>
#include <ferry/balance/routing_trace.hpp>
#include <ferry/base/result.hpp>
#include <ferry/exchange.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>

namespace ferry {

struct rebalance_options {
  std::int64_t every = 64;  ///< steps between two looks at the loads, at least 1
  /// incremental, or permute, replicate, hierarchical, local, each of which may move everything.
  /// local needs an exchange with options.sampled_tokens, and looks at choices sampled since the
  /// last change; it takes a tenth of a second to a few seconds a layer, in which no step runs.
  placement_policy policy = placement_policy::incremental;
  /// incremental: as placement_options. local: the present placement stays unless the busiest ranks
  /// above most_over_mean, in means, and the ranks that a token visits, both summed over the
  /// layers, fall by more than this.
  double min_gain = 0;
  double most_over_mean = 1.05;
  int num_groups = 1;
  std::size_t most_moved_bytes = std::numeric_limits<std::size_t>::max();
  std::int64_t most_samples = 1024;  ///< local: tokens of each rank that it looks at, at least 1
  migration_options migrate = {};
};

/// What the ranks' loads were in one interval.
struct balance_reading {
  std::int64_t step = 0;  ///< at its end
  double max_over_mean = 1, worst = 1;
  double floor = 1;  ///< by chance alone, as floor_of
};

/// Looks at measured loads every so many steps, finds a better placement, and migrates to it.
/// Lifetime borrows exchange and store
/// Order    calls come between two steps, the same ones on every rank
class rebalancer {
 public:
  /// Collective. Errors   those of migration::make; invalid_argument options
  static result<rebalancer> make(exchange& ep, expert_store& store, placement const& present,
                                 rebalance_options const& options);

  /// After every step, on every rank. Whatever the exchange sampled in the step is offered to
  /// `samples` too, where given: by exchange::sampled_choices it can be had once.
  /// Order    local, or `samples`: all that was put on queues has run
  /// Errors   those of migration::advance and begin, place, load_meter::read, offer_samples
  result<void> after_step(trace_sampler* samples = nullptr);

  /// Reads what the last interval has counted so far, for `last`. Collective.
  result<void> finish();

  placement const& present() const;
  migration_counters const& counters() const;
  /// Intervals of at least one choice; the first one saw the first placement.
  std::optional<balance_reading> const& first() const;
  std::optional<balance_reading> const& last() const;
  /// Loads since the last change of placement, an interval a step.
  load_window const& window() const;

  rebalancer(rebalancer&&) noexcept;
  ~rebalancer();

 private:
  struct state;
  explicit rebalancer(std::unique_ptr<state> s);
  std::unique_ptr<state> state_;
};

}  // namespace ferry
