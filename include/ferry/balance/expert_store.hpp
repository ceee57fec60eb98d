// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The weights of a rank's experts, as a migration sees them: bytes in slots.
#pragma once

#include <ferry/base/result.hpp>

#include <cstddef>
#include <span>

namespace ferry {

/// A slot of one rank in one layer. Slots are counted within the rank.
struct own_slot {
  int layer = 0;
  int slot = 0;
};

/// Whoever owns the weights gives a migration this view of them. An expert's bytes are the same on
/// every rank that holds it, whatever form a rank computes with.
/// Order    one call at a time; steps may run meanwhile, but not during `swap`
class expert_store {
 public:
  virtual ~expert_store() = default;

  /// Of every expert in every layer.
  virtual std::size_t expert_bytes() const = 0;
  /// Experts that can wait beside those in use.
  virtual int spare_slots() const = 0;

  /// Copies a part of the expert in a slot, from byte `offset`.
  virtual result<void> read(own_slot from, std::size_t offset, std::span<std::byte> to) = 0;
  /// Lays an expert aside, in spare `spare`, for `where`. It is not used before `swap`.
  virtual result<void> stage(int spare, own_slot where, std::span<std::byte const> weights) = 0;
  /// What lies aside, as it would be used.
  virtual result<void> read_staged(int spare, std::size_t offset, std::span<std::byte> to) = 0;
  /// Puts all that was laid aside into its slots. No step runs.
  /// Errors   device, after which the slots hold nothing usable
  virtual result<void> swap() = 0;
  /// Forgets what was laid aside.
  virtual void discard() = 0;
};

}  // namespace ferry
