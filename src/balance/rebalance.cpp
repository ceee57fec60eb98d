// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/balance/rebalance.hpp>

#include <ferry/balance/metrics.hpp>

#include "base/fail.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <span>
#include <utility>

namespace ferry {

struct rebalancer::state {
  exchange& ep;
  rebalance_options options;
  std::size_t expert_bytes;
  migration moving;
  load_meter meter;
  load_window window;
  std::int64_t steps = 0;
  std::int64_t in_interval = 0;
  std::optional<balance_reading> first{}, last{};
  std::optional<trace_sampler> sampler{};  ///< for local

  result<void> read();
  result<void> look();
  result<placement> better(expert_loads const& loads, placement_options const& o);
  result<void> sample(trace_sampler* samples);
  result<void> restart_sampling();
};

/// Ends an interval.
result<void> rebalancer::state::read() {
  in_interval = 0;
  placement const& where = moving.present();
  FERRY_TRY(counted_loads const loads, meter.read(ep, where));
  if (loads.choices() == 0) return {};
  FERRY_CHECK(window.add_step(loads.experts));
  // Every layer sees the same tokens.
  std::int64_t const tokens =
      loads.choices() / (std::int64_t{where.num_layers} * ep.options().topk);
  FERRY_TRY(double const floor,
            floor_of(tokens, ep.options().topk, where.num_experts, where.num_ranks));
  last = balance_reading{steps, loads.max_over_mean(), loads.worst(), floor};
  if (!first) first = last;
  return {};
}

result<void> rebalancer::state::look() {
  FERRY_CHECK(read());
  auto const loads = window.loads();
  if (!loads) return {};  // nothing was chosen yet, on any rank
  placement const& where = moving.present();
  placement_options o;
  o.num_ranks = where.num_ranks;
  o.num_nodes = where.num_nodes;
  o.num_groups = options.num_groups;
  o.redundant = where.num_slots - where.num_experts;
  o.most_over_mean = options.most_over_mean;
  o.min_gain = options.min_gain;
  o.expert_bytes = expert_bytes;
  o.most_moved_bytes = options.most_moved_bytes;
  FERRY_TRY(placement const next, better(*loads, o));
  if (next == where) return {};
  return moving.begin(next, &*loads);
}

namespace {

/// What local makes small, over all layers.
result<double> cost_of(placement const& where, expert_loads const& loads,
                       routing_trace const& trace, rebalance_options const& o) {
  FERRY_TRY(auto const balance, balance_of(where, loads));
  FERRY_TRY(auto const distance, distance_of(where, trace, o.migrate.replicas));
  double sum = distance.ranks_per_token * where.num_layers;
  for (double ratio : balance.max_over_mean) sum += std::max(ratio, o.most_over_mean);
  return sum;
}

}  // namespace

/// The same on every rank. The present placement where nothing is worth its move.
result<placement> rebalancer::state::better(expert_loads const& loads, placement_options const& o) {
  placement const& where = moving.present();
  placement_input known{.windows = {&loads, 1}, .present = &where};
  if (!sampler) return place(options.policy, known, o);
  FERRY_TRY(routing_trace const trace, gather_samples(ep.ranks(), sampler->sample()));
  if (trace.num_tokens == 0) return where;
  known.trace = &trace;
  FERRY_TRY(placement next, place(options.policy, known, o));
  FERRY_TRY(double const now, cost_of(where, loads, trace, options));
  FERRY_TRY(double const then, cost_of(next, loads, trace, options));
  return now - then > options.min_gain ? std::move(next) : where;
}

result<void> rebalancer::state::sample(trace_sampler* samples) {
  std::array<trace_sampler*, 2> to{};
  std::size_t count = 0;
  if (sampler) to[count++] = &*sampler;
  if (samples) to[count++] = samples;
  return count == 0 ? result<void>{} : offer_samples(ep, std::span(to).first(count));
}

result<void> rebalancer::state::restart_sampling() {
  if (options.policy != placement_policy::local) return {};
  FERRY_TRY(sampler,
            trace_sampler::make(window.num_layers(), ep.options().topk, options.most_samples));
  return {};
}

namespace {

/// Ranks that differed would call different collectives.
result<void> compare(group const& ranks, rebalance_options const& o) {
  std::uint64_t const mine[] = {
      static_cast<std::uint64_t>(o.every),        static_cast<std::uint64_t>(o.policy),
      std::bit_cast<std::uint64_t>(o.min_gain),   std::bit_cast<std::uint64_t>(o.most_over_mean),
      static_cast<std::uint64_t>(o.num_groups),   o.most_moved_bytes,
      static_cast<std::uint64_t>(o.most_samples), static_cast<std::uint64_t>(o.migrate.replicas)};
  FERRY_TRY(auto const all, ranks.all_gather(std::as_bytes(std::span(mine))));
  for (std::size_t r = 0; r < all.size(); ++r)
    if (all[r].size() != sizeof mine || std::memcmp(all[r].data(), mine, sizeof mine) != 0)
      return fail(
          error_code::invalid_argument,
          "rank {} rebalances with other options than rank {}: every {} steps by {}, "
          "min_gain {}, most_over_mean {}, {} groups, {} bytes, {} samples, replica choice {}",
          r, ranks.rank(), o.every, to_string(o.policy), o.min_gain, o.most_over_mean, o.num_groups,
          o.most_moved_bytes, o.most_samples, static_cast<int>(o.migrate.replicas));
  return {};
}

}  // namespace

rebalancer::rebalancer(std::unique_ptr<state> s) : state_(std::move(s)) {}
rebalancer::rebalancer(rebalancer&&) noexcept = default;
rebalancer::~rebalancer() = default;

result<rebalancer> rebalancer::make(exchange& ep, expert_store& store, placement const& present,
                                    rebalance_options const& options) {
  auto const fits = [&]() -> result<void> {
    if (options.every < 1)
      return fail(error_code::invalid_argument, "rebalancing every {} steps; 1 or more",
                  options.every);
    switch (options.policy) {
      case placement_policy::incremental:
      case placement_policy::permute:
      case placement_policy::replicate:
      case placement_policy::hierarchical: return {};
      case placement_policy::local:
        if (ep.options().sampled_tokens > 0 && options.most_samples > 0) return {};
        return fail(error_code::invalid_argument,
                    "rebalancing by the policy local from {} tokens of each step and {} of each "
                    "rank; at least 1 of both",
                    ep.options().sampled_tokens, options.most_samples);
      default:
        return fail(error_code::invalid_argument, "rebalancing by the policy {}",
                    to_string(options.policy));
    }
  };
  FERRY_CHECK(ep.ranks().agree(fits()));
  FERRY_CHECK(compare(ep.ranks(), options));
  FERRY_TRY(migration moving, migration::make(ep, store, present, options.migrate));
  FERRY_TRY(load_meter meter, load_meter::make(ep));
  FERRY_TRY(load_window window, load_window::make(present.num_layers, present.num_experts));
  auto s = std::make_unique<state>(state{ep, options, store.expert_bytes(), std::move(moving),
                                         std::move(meter), std::move(window)});
  FERRY_CHECK(s->restart_sampling());
  return rebalancer(std::move(s));
}

result<void> rebalancer::after_step(trace_sampler* samples) {
  state& s = *state_;
  FERRY_CHECK(s.sample(samples));
  ++s.steps;
  ++s.in_interval;
  if (s.moving.running()) {
    // The counters are of slots: what they counted belongs to the experts that were there.
    placement const before = s.moving.present();
    FERRY_TRY(bool const changed, s.moving.advance());
    if (!changed) return {};
    FERRY_TRY(counted_loads const mixed, s.meter.read(s.ep, before));
    static_cast<void>(mixed);
    s.in_interval = 0;
    s.window.clear();
    return s.restart_sampling();
  }
  return s.in_interval >= s.options.every ? s.look() : result<void>{};
}

result<void> rebalancer::finish() {
  return state_->read();
}

placement const& rebalancer::present() const {
  return state_->moving.present();
}
migration_counters const& rebalancer::counters() const {
  return state_->moving.counters();
}
std::optional<balance_reading> const& rebalancer::first() const {
  return state_->first;
}
std::optional<balance_reading> const& rebalancer::last() const {
  return state_->last;
}
load_window const& rebalancer::window() const {
  return state_->window;
}

}  // namespace ferry
