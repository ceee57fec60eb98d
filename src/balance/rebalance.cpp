// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/balance/rebalance.hpp>

#include "base/fail.hpp"

#include <bit>
#include <cstring>

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

  result<void> read();
  result<void> look();
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
  FERRY_TRY(placement const better,
            place(options.policy, {.windows = {&*loads, 1}, .present = &where}, o));
  if (better == where) return {};
  return moving.begin(better, &*loads);
}

namespace {

/// Ranks that differed would call different collectives.
result<void> compare(group const& ranks, rebalance_options const& o) {
  std::uint64_t const mine[] = {
      static_cast<std::uint64_t>(o.every),      static_cast<std::uint64_t>(o.policy),
      std::bit_cast<std::uint64_t>(o.min_gain), std::bit_cast<std::uint64_t>(o.most_over_mean),
      static_cast<std::uint64_t>(o.num_groups), o.most_moved_bytes};
  FERRY_TRY(auto const all, ranks.all_gather(std::as_bytes(std::span(mine))));
  for (std::size_t r = 0; r < all.size(); ++r)
    if (all[r].size() != sizeof mine || std::memcmp(all[r].data(), mine, sizeof mine) != 0)
      return fail(error_code::invalid_argument,
                  "rank {} rebalances with other options than rank {}: every {} steps by {}, "
                  "min_gain {}, most_over_mean {}, {} groups, {} bytes",
                  r, ranks.rank(), o.every, to_string(o.policy), o.min_gain, o.most_over_mean,
                  o.num_groups, o.most_moved_bytes);
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
  return rebalancer(std::make_unique<state>(state{
      ep, options, store.expert_bytes(), std::move(moving), std::move(meter), std::move(window)}));
}

result<void> rebalancer::after_step() {
  state& s = *state_;
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
    return {};
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
