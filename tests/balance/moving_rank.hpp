// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// A rank whose experts move while it takes part in checked steps.
#pragma once

#include "balance/byte_store.hpp"
#include "balance/placed_steps.hpp"

#include <ferry/balance/migrate.hpp>

#include <algorithm>

namespace ferry::oracle {

inline constexpr std::size_t expert_bytes = 1003;

inline int most_slots(placement const& p) {
  int most = 0;
  for (int r = 0; r < p.num_ranks; ++r) most = std::max(most, p.slots_of(r));
  return most;
}

/// A rank with a store, an exchange and a migration, whose steps are checked.
struct moving_rank {
  placed_world const& w;
  group const& g;
  complaints& wrong;
  exchange ep;
  placement start;
  byte_store store;
  migration moving;
  placed_rank rank;
  std::uint64_t seed;
  int steps = 0;

  moving_rank(placed_world const& world, group const& ranks, complaints& c, std::uint64_t s,
              queue q, migration_options const& options)
      : w(world),
        g(ranks),
        wrong(c),
        ep(make_exchange(ranks, world.options()).value()),
        start(first_placement(world, s)),
        store(start, ranks.rank(), most_slots(start), expert_bytes),
        moving(make_placed(options)),
        rank(world, ep, std::move(q)),
        seed(s) {
    rank.ask([this](int layer, int slot) { return store.holds(layer, slot); });
    rank.follow(start);
    rank.capture_all().value();
  }

  static placement first_placement(placed_world const& world, std::uint64_t s) {
    dice from(s + 5);
    return random_placement(from, world.layers, world.experts, world.ranks, world.slots);
  }
  migration make_placed(migration_options const& options) {
    apply_placement(ep, start, options.replicas).value();
    return migration::make(ep, store, start, options).value();
  }

  /// One step of a random layer.
  bool step() {
    dice from(seed * 77 + static_cast<std::uint64_t>(steps));
    int const layer = pick(from, 0, w.layers - 1);
    bool const replayed = one_in(from, 2);
    result<void> const done =
        rank.step(layer, seed * 1000 + static_cast<std::uint64_t>(steps++), replayed, wrong);
    if (!done) wrong.add(done.error().message);
    return done.has_value();
  }
  /// Steps until a migration has ended; the first error.
  result<void> run() {
    for (int i = 0; moving.running(); ++i) {
      if (i > 2000) return error{error_code::internal, "it does not end"};
      if (!step()) return error{error_code::internal, "a step failed"};
      FERRY_TRY(bool const changed, moving.advance());
      if (changed) rank.follow(moving.present());
      wrong.check(store.is(moving.present(), g.rank()), "slots hold what the placement says");
    }
    return {};
  }
};

}  // namespace ferry::oracle
