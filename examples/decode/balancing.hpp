// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// What decode does about the ranks' loads: measures them, and moves experts where that is asked
/// for.
#pragma once

#include <ferry/balance/load_files.hpp>
#include <ferry/deepseek/model.hpp>
#include <ferry/ferry.hpp>
#include <ferry/placement.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace ferry::decode {

struct balance_options {
  std::optional<std::filesystem::path> placement_file;
  replica_choice replicas = replica_choice::hash;
  std::int64_t every = 0;  ///< steps between two looks; 0: experts stay
  double min_gain = 0;
  placement_policy policy = placement_policy::incremental;
  std::size_t bytes_per_step = migration_options{}.bytes_per_step;
  std::string rebalance;  ///< as it was given
  std::optional<std::filesystem::path> loads_file;
};

/// Reads "every=N[,min-gain=X][,bytes-per-step=N][,policy=NAME]" into `to`.
/// Errors   invalid_argument naming the part that is none of these
result<void> parse_rebalance(std::string const& text, balance_options& to);

/// Tokens of each of a rank's steps whose choices have to be sampled, 0 where nobody looks at them.
int sampled_tokens(balance_options const& options);

/// All of it is the same on every rank, but for `moved`.
struct balance_report {
  std::optional<balance_reading> before, after;  ///< nothing where no layer has experts
  migration_counters moved;                      ///< by this rank
};

class balancing {
 public:
  /// Collective.
  /// Errors   those of rebalancer::make and load_meter::make; invalid_state loads or rebalancing
  ///          are asked for, but no layer has experts
  static result<balancing> make(deepseek::model& model, group const& ranks,
                                balance_options const& options);

  /// After each decode step, on every rank.
  result<void> after_step();
  /// What there was to see, and writes the loads. Collective.
  result<balance_report> finish();

 private:
  balancing(deepseek::model& model, group const& ranks, balance_options const& options)
      : model_(&model), ranks_(ranks), options_(options) {}
  placement const& present() const;
  result<void> read(placement const& where);
  result<void> save_loads();

  deepseek::model* model_;
  group ranks_;
  balance_options options_;
  std::unique_ptr<expert_store> store_;
  std::optional<rebalancer> keeps_;
  std::optional<load_meter> meter_;
  std::optional<load_window> window_;
  std::optional<trace_sampler> sampler_;
  counted_loads total_;
  std::int64_t steps_ = 0;
};

}  // namespace ferry::decode
