// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "balance/incremental.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace ferry::balance {
namespace {

std::size_t at(int i) {
  return static_cast<std::size_t>(i);
}

/// One thing to do: two slots change their experts, or one slot takes another expert.
struct action {
  int slot = -1;
  int other = -1;   ///< the second slot, or
  int expert = -1;  ///< the expert that the slot takes
  double gain = 0;  ///< load above the target that it removes, for each expert that moves
};

/// One layer on its way.
class layer_state {
 public:
  layer_state(placement const& present, int layer, std::span<double const> loads, double target)
      : present_(present),
        layer_(layer),
        loads_(loads),
        target_(target),
        slots_(present.layer(layer).begin(), present.layer(layer).end()),
        copies_(loads.size()),
        rank_load_(at(present.num_ranks)),
        held_(at(present.num_ranks) * loads.size()) {
    for (auto e : slots_) ++copies_[at(e)];
    add_up();
  }

  std::vector<std::int32_t> const& slots() const { return slots_; }
  double most() const { return *std::max_element(rank_load_.begin(), rank_load_.end()); }
  double excess() const {
    double sum = 0;
    for (double load : rank_load_) sum += above(load);
    return sum;
  }
  /// Experts that lie on ranks which do not have them at present.
  std::int64_t moved() const {
    std::int64_t count = 0;
    for (int s = 0; s < present_.num_slots; ++s) {
      int const r = present_.rank_of(s);
      auto const mine =
          present_.layer(layer_).subspan(at(present_.first_slot(r)), at(present_.slots_of(r)));
      count += std::find(mine.begin(), mine.end(), slots_[at(s)]) == mine.end();
    }
    return count;
  }

  std::optional<action> best_action() const {
    int const busy = static_cast<int>(std::max_element(rank_load_.begin(), rank_load_.end()) -
                                      rank_load_.begin());
    action best;
    best.gain = 1e-9 * target_;
    for (int s = present_.first_slot(busy); s < present_.first_slot(busy + 1); ++s)
      for (int other = 0; other < present_.num_slots; ++other) {
        consider_swap(s, other, busy, best);
        consider_replica(slots_[at(s)], other, best);
      }
    if (best.slot < 0) return {};
    return best;
  }
  /// Applying what it returns takes the action back.
  action apply(action const& a) {
    action back = a;
    if (a.other >= 0) {
      std::swap(slots_[at(a.slot)], slots_[at(a.other)]);
    } else {
      back.expert = slots_[at(a.slot)];
      --copies_[at(back.expert)];
      ++copies_[at(a.expert)];
      slots_[at(a.slot)] = a.expert;
    }
    add_up();
    return back;
  }

 private:
  double above(double load) const { return std::max(0.0, load - target_); }
  double share(int e) const { return loads_[at(e)] / copies_[at(e)]; }
  bool holds(int rank, int e) const { return held_[at(rank) * loads_.size() + at(e)] != 0; }
  void add_up() {
    std::fill(rank_load_.begin(), rank_load_.end(), 0.0);
    std::fill(held_.begin(), held_.end(), 0);
    for (int s = 0; s < present_.num_slots; ++s) {
      int const r = present_.rank_of(s), e = slots_[at(s)];
      rank_load_[at(r)] += share(e);
      held_[at(r) * loads_.size() + at(e)] = 1;
    }
  }

  void consider_swap(int s, int other, int busy, action& best) const {
    int const r = present_.rank_of(other), a = slots_[at(s)], b = slots_[at(other)];
    if (r == busy || a == b || holds(r, a) || holds(busy, b)) return;
    double const moved = share(a) - share(b);
    double const before = above(rank_load_[at(busy)]) + above(rank_load_[at(r)]);
    double const after = above(rank_load_[at(busy)] - moved) + above(rank_load_[at(r)] + moved);
    if (before - after > 2 * best.gain) best = {s, other, -1, (before - after) / 2};
  }

  /// One more replica of an expert on the busiest rank, in the place of one that another can spare.
  void consider_replica(int e, int slot, action& best) const {
    int const r = present_.rank_of(slot), f = slots_[at(slot)];
    if (copies_[at(f)] < 2 || e == f || holds(r, e)) return;
    double const less = share(e) - loads_[at(e)] / (copies_[at(e)] + 1);
    double const more = loads_[at(f)] / (copies_[at(f)] - 1) - share(f);
    double gain = 0;
    for (int q = 0; q < present_.num_ranks; ++q) {
      double load = rank_load_[at(q)];
      double const before = above(load);
      if (holds(q, e)) load -= less;
      if (q == r)
        load += share(e) - less - share(f);
      else if (holds(q, f))
        load += more;
      gain += before - above(load);
    }
    if (gain > best.gain) best = {slot, -1, e, gain};
  }

  placement const& present_;
  int layer_;
  std::span<double const> loads_;
  double target_;
  std::vector<std::int32_t> slots_;
  std::vector<int> copies_;
  std::vector<double> rank_load_;
  std::vector<char> held_;  // [ranks, experts]
};

}  // namespace

placement incremental(placement const& present, expert_loads const& loads,
                      placement_options const& o) {
  std::vector<layer_state> layers;
  std::vector<double> excess;
  double means = 0, before = 0, after = 0;
  for (int l = 0; l < present.num_layers; ++l) {
    auto const of_layer = loads.layer(l);
    double const mean = std::accumulate(of_layer.begin(), of_layer.end(), 0.0) / present.num_ranks;
    layers.emplace_back(present, l, of_layer, mean * o.most_over_mean);
    excess.push_back(layers.back().excess());
    means += mean;
    before += layers.back().most();
  }
  auto const most_moves = static_cast<std::int64_t>(
      std::min<std::size_t>(o.most_moved_bytes / o.expert_bytes, INT64_MAX));
  std::int64_t moves = 0;
  for (;;) {
    // A layer in which nothing helps any more has its excess set to 0.
    auto const worst = std::max_element(excess.begin(), excess.end());
    if (*worst <= 0) break;
    auto& layer = layers[static_cast<std::size_t>(worst - excess.begin())];
    auto const next = layer.best_action();
    *worst = 0;
    if (!next) continue;
    auto const moved = layer.moved();
    auto const back = layer.apply(*next);
    if (moves + layer.moved() - moved > most_moves) {
      layer.apply(back);
      continue;
    }
    moves += layer.moved() - moved;
    *worst = layer.excess();
  }
  placement next = present;
  for (int l = 0; l < present.num_layers; ++l) {
    auto const& slots = layers[at(l)].slots();
    std::copy(slots.begin(), slots.end(), next.layer(l).begin());
    after += layers[at(l)].most();
  }
  return before - after < o.min_gain * means ? present : next;
}

}  // namespace ferry::balance
