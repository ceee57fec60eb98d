// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Steps of several layers under placements that change, held against plain loops: every (layer,
/// expert) is another affine function of small whole numbers, so that a row which reaches a slot
/// that does not hold its expert changes a sum.
#pragma once

#include "exchange/captured_step.hpp"

#include <ferry/balance/apply_placement.hpp>
#include <ferry/balance/placement.hpp>
#include <ferry/exec/graph.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

namespace ferry::oracle {

/// A placement drawn at random: every expert somewhere, none twice on a rank.
inline placement random_placement(dice& from, int layers, int experts, int ranks, int slots) {
  placement p{layers, experts, ranks, 1, slots, {}};
  for (int l = 0; l < layers; ++l) {
    std::vector<std::int32_t> layer;
    do {
      layer.clear();
      for (int s = 0; s < slots; ++s) layer.push_back(s < experts ? s : pick(from, 0, experts - 1));
      std::shuffle(layer.begin(), layer.end(), from);
    } while (!validate(placement{1, experts, ranks, 1, slots, layer}));
    p.experts.insert(p.experts.end(), layer.begin(), layer.end());
  }
  return p;
}

/// Sizes of a run: some layers, more slots than experts.
struct placed_world {
  int ranks = 1;
  int experts = 1;
  int slots = 1;
  int layers = 1;
  int topk = 2;
  int hidden = 8;
  int max_tokens = 6;
  int sampled = 3;
  replica_choice rule = replica_choice::hash;
  ferry::reduction reduction = reduction::per_rank;
  bool pairs = false;  ///< a token's choices lie half of the experts apart
  int hot = 0;         ///< choices name the first so many experts only; 0: all

  exchange_options options() const {
    exchange_options o;
    o.num_experts = experts;
    o.topk = topk;
    o.hidden = hidden;
    o.max_tokens = max_tokens;
    o.expert_slots = slots;
    o.layers = layers;
    o.sampled_tokens = sampled;
    o.tokens = o.expert_rows = o.output = dtype::f32;
    o.wire = o.combine_wire = wire::f32;
    o.reduction = reduction;
    o.block_teams = 1;
    return o;
  }
};

inline placed_world random_placed_world(dice& from) {
  placed_world w;
  w.ranks = pick(from, 1, 4);
  w.experts = pick(from, std::max(2, w.ranks), 9);
  w.slots = w.experts + pick(from, 0, w.ranks > 1 ? w.ranks : 0);
  w.layers = pick(from, 1, 3);
  w.topk = pick(from, 1, 3);
  w.rule =
      pick_one(from, {replica_choice::hash, replica_choice::round_robin, replica_choice::nearest});
  w.reduction = one_in(from, 2) ? reduction::per_choice : reduction::per_rank;
  return w;
}

/// What expert `expert` of `layer` makes of a number.
inline float placed_expert(int layer, int expert, float x) {
  return static_cast<float>(2 + (expert * 7 + layer * 3) % 11) * x +
         static_cast<float>(expert * 5 + layer);
}

/// One rank: its slot, and a graph for each layer.
class placed_rank {
 public:
  placed_rank(placed_world const& w, exchange& ep, queue q, int slot = 0)
      : w_(w), ep_(ep), slot_(ep.microbatch(slot)), q_(std::move(q)), rank_(ep.ranks().rank()) {
    int const own = ep.first_expert(rank_ + 1) - ep.first_expert(rank_);
    capacity_ = std::int64_t{w.ranks} * w.max_tokens * w.topk;
    auto const memory = [&](std::int64_t rows, int columns) {
      return std::make_unique<twin_memory>(
          q_.where(), static_cast<std::size_t>(std::max<std::int64_t>(rows, 1) * columns) * 4);
    };
    tokens_ = memory(w.max_tokens, w.hidden);
    output_ = memory(w.max_tokens, w.hidden);
    ids_ = memory(w.max_tokens, w.topk);
    weights_ = memory(w.max_tokens, w.topk);
    count_ = memory(1, 1);
    arrived_ = memory(capacity_, w.hidden);
    made_ = memory(capacity_, w.hidden);
    starts_ = memory(own, 1);
    counts_ = memory(own, 1);
    loads_.assign(static_cast<std::size_t>(w.layers * own), 0);
    own_ = own;
  }

  /// All ranks change to it between the same two steps.
  result<void> place(placement const& where, expert_loads const* loads = nullptr) {
    follow(where, loads);
    return apply_placement(ep_, where, w_.rule, loads);
  }
  /// The tables are those of `where` already.
  void follow(placement const& where, expert_loads const* loads = nullptr) {
    where_ = where;
    tables_.clear();
    for (int l = 0; l < w_.layers; ++l)
      for (int r = 0; r < w_.ranks; ++r)
        tables_.push_back(
            replicas_for(where, l, r, w_.rule, loads ? loads->layer(l) : std::span<double const>{})
                .value());
  }
  /// Loads and samples, which all steps of the exchange share, are looked at elsewhere.
  void leave_counts_alone() { looks_at_counts_ = false; }
  /// Asks who is in a slot of this rank, (layer, slot), instead of the placement.
  void ask(std::function<int(int, int)> holds) { holds_ = std::move(holds); }

  result<void> put(int layer) {
    for (auto* m : {&tokens_, &ids_, &weights_, &count_}) FERRY_CHECK((*m)->send(q_));
    FERRY_CHECK(slot_.dispatch_send(
        q_,
        {.tokens = rows_of(tokens_->there<float>(), w_.max_tokens, w_.hidden),
         .choices = dense<std::int32_t const>(ids_->there<std::int32_t>(), w_.max_tokens, w_.topk),
         .weights = dense<float const>(weights_->there<float>(), w_.max_tokens, w_.topk),
         .num_tokens = count_->there<std::int32_t>(),
         .layer = layer}));
    FERRY_TRY(received const in, slot_.dispatch_receive(q_));
    FERRY_CHECK(arrived_->fetch_from(q_, in.rows.data));
    if (own_ > 0) {
      FERRY_CHECK(starts_->fetch_from(q_, in.starts));
      FERRY_CHECK(counts_->fetch_from(q_, in.counts));
    }
    FERRY_CHECK(q_.run([this, layer]() -> result<void> {
      run_experts(layer);
      return {};
    }));
    FERRY_CHECK(made_->send(q_));
    FERRY_CHECK(slot_.combine(q_, rows_of(made_->there<float>(), capacity_, w_.hidden),
                              rows_of(output_->there<float>(), w_.max_tokens, w_.hidden)));
    return output_->fetch(q_);
  }
  result<void> capture_all() {
    for (int l = 0; l < w_.layers; ++l) {
      FERRY_TRY(graph one, capture(q_, [&] { return put(l); }));
      graphs_.push_back(std::move(one));
    }
    return {};
  }
  result<void> replay(int layer) { return graphs_[static_cast<std::size_t>(layer)].launch(q_); }

  /// How often each expert was chosen in the last step, by all ranks.
  std::map<int, int> chosen() const {
    std::map<int, int> times;
    for (tokens const& t : brought_) count_choices(t, times);
    return times;
  }
  /// By this rank alone.
  std::map<int, int> chosen_here() const {
    std::map<int, int> times;
    count_choices(brought_[static_cast<std::size_t>(rank_)], times);
    return times;
  }

  /// One step, by every rank's dice of the same seed: each knows what the others bring.
  result<void> step(int layer, std::uint64_t seed, bool replayed, complaints& wrong) {
    brought_.clear();
    dice from(seed);
    for (int r = 0; r < w_.ranks; ++r) brought_.push_back(draw(from));
    bring(brought_[static_cast<std::size_t>(rank_)]);
    FERRY_CHECK(replayed ? replay(layer) : put(layer));
    FERRY_CHECK(slot_.wait(q_));
    check(layer, wrong);
    return {};
  }

 private:
  struct tokens {
    int count = 0;
    std::vector<std::int32_t> ids;
    std::vector<float> weights, rows;
  };

  void count_choices(tokens const& t, std::map<int, int>& times) const {
    for (int i = 0; i < t.count * w_.topk; ++i)
      if (int const e = t.ids[static_cast<std::size_t>(i)]; e >= 0) ++times[e];
  }
  tokens draw(dice& from) const {
    tokens t;
    t.count = one_in(from, 5) ? 0 : pick(from, 0, w_.max_tokens);
    for (int i = 0; i < w_.max_tokens * w_.topk; ++i) {
      t.ids.push_back(one_in(from, 7) ? -1 : pick(from, 0, (w_.hot ? w_.hot : w_.experts) - 1));
      t.weights.push_back(static_cast<float>(pick(from, 1, 9)));
    }
    if (w_.pairs)
      for (std::size_t i = 1; i < t.ids.size(); i += 2)
        t.ids[i] = t.ids[i - 1] < 0 ? -1 : (t.ids[i - 1] + w_.experts / 2) % w_.experts;
    for (int i = 0; i < w_.max_tokens * w_.hidden; ++i)
      t.rows.push_back(static_cast<float>(pick(from, -50, 50)));
    return t;
  }
  void bring(tokens const& t) {
    *count_->here<std::int32_t>() = t.count;
    std::copy(t.ids.begin(), t.ids.end(), ids_->here<std::int32_t>());
    std::copy(t.weights.begin(), t.weights.end(), weights_->here<float>());
    std::copy(t.rows.begin(), t.rows.end(), tokens_->here<float>());
  }
  void run_experts(int layer) {
    for (int s = 0; s < own_; ++s) {
      int const expert =
          holds_ ? holds_(layer, s)
                 : where_.layer(layer)[static_cast<std::size_t>(ep_.first_expert(rank_) + s)];
      std::int64_t const first = std::int64_t{starts_->here<std::int32_t>()[s]} * w_.hidden;
      std::int64_t const size = std::int64_t{counts_->here<std::int32_t>()[s]} * w_.hidden;
      for (std::int64_t i = first; i < first + size; ++i)
        made_->here<float>()[i] = placed_expert(layer, expert, arrived_->here<float>()[i]);
    }
  }

  void check(int layer, complaints& wrong) {
    tokens const& mine = brought_[static_cast<std::size_t>(rank_)];
    auto const at = [](int row, int width, int column) {
      return static_cast<std::size_t>(row * width + column);
    };
    for (int t = 0; t < mine.count; ++t)
      for (int c = 0; c < w_.hidden; ++c) {
        float want = 0;
        for (int k = 0; k < w_.topk; ++k)
          if (int const e = mine.ids[at(t, w_.topk, k)]; e >= 0)
            want += mine.weights[at(t, w_.topk, k)] *
                    placed_expert(layer, e, mine.rows[at(t, w_.hidden, c)]);
        float const got = output_->here<float>()[at(t, w_.hidden, c)];
        if (got != want)
          wrong.add(
              fmt::format("rank {} layer {} token {}: {}, not {}", rank_, layer, t, got, want));
      }
    if (!looks_at_counts_) return;
    check_loads(layer, wrong);
    check_samples(layer, mine, wrong);
  }
  // By the tables that the host chooses by, and without what was masked or not there.
  void check_loads(int layer, complaints& wrong) {
    for (int r = 0; r < w_.ranks; ++r) {
      tokens const& from = brought_[static_cast<std::size_t>(r)];
      for (int i = 0; i < from.count * w_.topk; ++i) {
        std::int32_t const slot =
            tables_[static_cast<std::size_t>(layer * w_.ranks + r)].slot(
                from.ids[static_cast<std::size_t>(i)], static_cast<std::uint32_t>(i / w_.topk)) -
            ep_.first_expert(rank_);
        if (from.ids[static_cast<std::size_t>(i)] >= 0 && slot >= 0 && slot < own_)
          ++loads_[static_cast<std::size_t>(layer * own_ + slot)];
      }
    }
    if (ep_.slot_loads().value() != loads_)
      wrong.add(fmt::format("rank {} layer {}: loads of its slots", rank_, layer));
  }
  void check_samples(int layer, tokens const& mine, complaints& wrong) {
    auto const got = ep_.sampled_choices().value();
    // What other layers and slots hold was taken after their own steps.
    auto want_all = std::vector<std::int32_t>(got.size(), -1);
    if (ep_.sampled_choices().value() != want_all)
      wrong.add(fmt::format("rank {} layer {}: samples are there twice", rank_, layer));
    for (int i = 0; i < w_.sampled; ++i) {
      int const token = mine.count > w_.sampled ? i * mine.count / w_.sampled : i;
      for (int k = 0; k < w_.topk; ++k) {
        int const want =
            token < mine.count ? mine.ids[static_cast<std::size_t>(token * w_.topk + k)] : -1;
        want_all[static_cast<std::size_t>((i * w_.layers + layer) * w_.topk + k)] = want;
      }
    }
    if (got != want_all) wrong.add(fmt::format("rank {} layer {}: samples", rank_, layer));
  }

  placed_world const& w_;
  exchange& ep_;
  microbatch& slot_;
  queue q_;
  int rank_, own_ = 0;
  std::int64_t capacity_ = 0;
  placement where_;
  std::function<int(int, int)> holds_;
  bool looks_at_counts_ = true;
  std::vector<replica_table> tables_;  ///< [layers, ranks]
  std::vector<tokens> brought_;        ///< by all ranks to this step
  std::vector<std::uint64_t> loads_;   ///< [layers, own slots]
  std::unique_ptr<twin_memory> tokens_, output_, ids_, weights_, count_, arrived_, made_, starts_,
      counts_;
  std::vector<graph> graphs_;
};

/// Steps of random layers, captured and not, under placements that change every few steps.
inline void run_placed_world(std::uint64_t seed, int steps,
                             std::function<device(int)> const& device_of,
                             std::function<queue(device const&)> const& queue_on) {
  dice from(seed);
  placed_world const w = random_placed_world(from);
  complaints wrong;
  run_ranks(w.ranks, std::chrono::seconds(60), wrong, [&](group const& g) {
    device const where = device_of(g.rank());
    result<exchange> ep = make_exchange(g, where, w.options());
    if (!ep) return wrong.add(ep.error().message);
    dice same(seed + 1);  // on every rank
    placed_rank rank(w, *ep, queue_on(where));
    if (auto const r = rank.capture_all(); !r) return wrong.add(r.error().message);
    for (int i = 0; i < steps; ++i) {
      if (i % 4 == 0) {
        expert_loads loads{w.layers, w.experts, {}};
        for (int n = 0; n < w.layers * w.experts; ++n) loads.values.push_back(pick(same, 1, 99));
        auto const placed =
            rank.place(random_placement(same, w.layers, w.experts, w.ranks, w.slots), &loads);
        if (!placed) return wrong.add(placed.error().message);
        // Slots hold other experts now: nobody may send before all have changed.
        if (auto const r = g.barrier(); !r) return wrong.add(r.error().message);
      }
      int const layer = pick(same, 0, w.layers - 1);
      bool const replayed = !one_in(same, 3);
      auto const done =
          rank.step(layer, seed * 1000 + static_cast<std::uint64_t>(i), replayed, wrong);
      if (!done) return wrong.add(done.error().message);
    }
  });
  EXPECT_TRUE(wrong.none()) << "seed " << seed << ": " << w.ranks << " ranks, " << w.experts
                            << " experts, " << w.slots << " slots, " << w.layers << " layers, rule "
                            << static_cast<int>(w.rule) << "\n"
                            << wrong.text();
}

}  // namespace ferry::oracle
