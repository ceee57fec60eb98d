// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Moves experts between ranks while steps go on.
#pragma once

#include <ferry/balance/expert_loads.hpp>
#include <ferry/balance/expert_store.hpp>
#include <ferry/balance/placement.hpp>
#include <ferry/balance/replicas.hpp>
#include <ferry/base/result.hpp>
#include <ferry/exchange.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

namespace ferry {

struct migration_options {
  /// That a rank sends between two steps, over all peers. At least 8.
  std::size_t bytes_per_step = std::size_t{4} << 20;
  replica_choice replicas = replica_choice::hash;
};

/// What migrations have done on this rank since the object was made.
struct migration_counters {
  std::uint64_t rounds = 0;  ///< times that tables changed
  std::uint64_t experts_sent = 0, experts_received = 0;
  std::uint64_t bytes_sent = 0;
};

/// The same placement with an expert that stays on its rank left in its slot: nothing moves within
/// a rank. Both are of the same layers, experts, ranks and slots.
placement keep_slots(placement const& from, placement to);

/// Changes an exchange from one placement to another, a few bytes after every step, in rounds of
/// whole layers. A round's experts are written into the receivers' windows, beside those in use;
/// when all have arrived, been checked against the senders' checksums and read back from where they
/// were laid aside, the ranks agree, and each puts the weights into their slots and rewrites its
/// tables before it takes part in another step. No step sees tables of both kinds.
/// Lifetime borrows exchange and store
/// Order    calls come between two steps, the same ones on every rank
class migration {
 public:
  /// Makes the windows: as many experts as the store has spare slots. Collective.
  /// `present` is where the experts are; the exchange's tables say so already.
  /// Errors   invalid_argument options, or a placement, store or exchange that do not fit;
  ///          unsupported a peer whose window cannot be mapped; those of group::share_window
  static result<migration> make(exchange& ep, expert_store& store, placement const& present,
                                migration_options const& options = {});

  /// Begins to change to `target`. Collective.
  /// Shapes   loads: as apply_placement
  /// Errors   invalid_state one is under way; invalid_argument what check_fits refuses, targets
  ///          that differ between ranks; capacity a layer for which a rank receives more experts
  ///          than there are spare slots: nothing has changed
  result<void> begin(placement const& target, expert_loads const* loads = nullptr);

  /// Sends and takes this step's part; at the end of a round, waits for the others and changes
  /// slots and tables. Collective while one is under way.
  /// Returns  whether tables have changed
  /// Errors   internal an expert arrived, or was laid aside, with other bytes than it was
  ///          sent with, naming it: no table has changed on any rank, the migration has ended, and
  ///          steps may go on. unreachable, timeout: the group is broken, and `present` is the same
  ///          on all ranks that live, with tables and weights as it says: the placement before this
  ///          round, or, where all had agreed, the one after it. device: the group is broken
  result<bool> advance();

  /// Whether one is under way.
  bool running() const;
  /// Where the experts are.
  placement const& present() const;
  migration_counters const& counters() const;

  migration(migration&&) noexcept;
  migration& operator=(migration&&) noexcept;
  ~migration();

  struct state;

 private:
  explicit migration(std::unique_ptr<state> s);
  std::unique_ptr<state> state_;
};

}  // namespace ferry
