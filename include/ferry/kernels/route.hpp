// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// A token's choices: reading the caller's ids, and finding the ranks that serve them.
#pragma once

#include <ferry/exec/team.hpp>
#include <ferry/kernels/step.hpp>

#include <bit>
#include <cstdint>

namespace ferry {

/// The caller's choices and weights, in the types that they have.
struct caller_routing {
  void const* ids = nullptr;  ///< [T, K]
  std::int64_t id_stride = 0;
  bool ids_are_int64 = false;
  float const* weights = nullptr;  ///< [T, K], or null: all ones
  std::int64_t weight_stride = 0;

  FERRY_FN std::int64_t id(int token, int choice) const {
    std::int64_t const at = token * id_stride + choice;
    return ids_are_int64 ? static_cast<std::int64_t const*>(ids)[at]
                         : static_cast<std::int32_t const*>(ids)[at];
  }
  FERRY_FN float weight(int token, int choice) const {
    return weights ? weights[token * weight_stride + choice] : 1.0f;
  }
};

/// Finds the slots that serve this rank's choices in one layer.
class slot_chooser {
 public:
  // Where a row starts is kept beside the pointers and not added to them under a condition: no
  // compiler would then know what kind of memory they point to.
  FERRY_FN slot_chooser(step_frame const& frame, int layer)
      : first_(frame.placed.first),
        candidates_(frame.placed.candidates),
        known_(first_ ? frame.placed.experts : frame.shape.experts),
        source_(static_cast<std::uint32_t>(frame.shape.rank)),
        first_row_(static_cast<std::size_t>(layer) *
                   (static_cast<std::size_t>(frame.placed.experts) + 1)),
        candidate_row_(static_cast<std::size_t>(layer) *
                       static_cast<std::size_t>(frame.shape.experts)) {}

  /// -1 where `id` names no expert.
  FERRY_FN std::int32_t slot(int token, std::int64_t id) const {
    if (id < 0 || id >= known_) return -1;
    auto const expert = static_cast<std::int32_t>(id);
    if (!first_) return expert;
    return replica_slot(first_ + first_row_, candidates_ + candidate_row_, source_,
                        static_cast<std::uint32_t>(token), expert);
  }

 private:
  std::int32_t const* first_;
  std::int32_t const* candidates_;
  std::int32_t known_;
  std::uint32_t source_;
  std::size_t first_row_;
  std::size_t candidate_row_;
};

/// Copies one token's routing into private memory: the slots that serve its choices; ids that name
/// no expert become -1.
/// Returns  how many ids were neither -1 nor an expert, on the leader; 0 on other lanes
template <team Team>
FERRY_FN std::uint64_t keep_routing(Team const& t, step_frame const& frame,
                                    caller_routing const& from, slot_chooser const& slots,
                                    int token) {
  int const topk = frame.shape.topk;
  std::uint64_t bad = 0;
  for (int k = t.lane(); k < topk; k += Team::lanes) {
    std::int64_t const id = from.id(token, k);
    std::int32_t const slot = slots.slot(token, id);
    bad += slot < 0 && id != -1;
    std::size_t const at = static_cast<std::size_t>(token) * static_cast<std::size_t>(topk) +
                           static_cast<std::size_t>(k);
    frame.memory.choices[at] = slot;
    frame.memory.weights[at] = from.weight(token, k);
  }
  t.sync();
  return bad;
}

/// A token's kept choices.
struct routing {
  std::int32_t const* choices;  ///< [K]
  float const* weights;         ///< [K]
  std::int32_t const* owners;   ///< [experts]
  int topk;

  FERRY_FN int rank(int k) const { return choices[k] < 0 ? -1 : owners[choices[k]]; }

  /// The smallest rank above `after` that serves a choice; -1 when there is none.
  FERRY_FN int next_rank(int after) const {
    int next = -1;
    for (int k = 0; k < topk; ++k) {
      int const r = rank(k);
      if (r > after && (next < 0 || r < next)) next = r;
    }
    return next;
  }
};
FERRY_FN routing routing_of(step_frame const& frame, int token) {
  std::size_t const at =
      static_cast<std::size_t>(token) * static_cast<std::size_t>(frame.shape.topk);
  return {frame.memory.choices + at, frame.memory.weights + at, frame.memory.owners,
          frame.shape.topk};
}

/// A set of numbers below 64, in ascending order: ranks of a device's group, or choices.
struct number_set {
  std::uint64_t bits = 0;

  FERRY_FN bool empty() const { return bits == 0; }
  FERRY_FN bool has(int n) const { return (bits >> n & 1) != 0; }
  FERRY_FN int first() const { return std::countr_zero(bits); }
  FERRY_FN void drop_first() { bits &= bits - 1; }
  FERRY_FN number_set from(int n) const { return {bits & ~std::uint64_t{0} << n}; }
  FERRY_FN number_set below(int n) const { return {bits & ~(~std::uint64_t{0} << n)}; }
};

/// A token's kept choices in registers, one on each lane, so that they are read once however many
/// ranks they lead to. Needs as many lanes as choices, and at most 64 ranks.
template <team Team>
struct lane_route {
  number_set ranks;         ///< that serve a choice; the same on all lanes
  std::int32_t rank = -1;   ///< that serves this lane's choice
  std::int32_t local = -1;  ///< the choice in that rank's own numbering
  float weight = 0.0f;

  /// Every lane of the team makes it.
  FERRY_FN lane_route(Team const& t, step_frame const& frame, int token) {
    exchange_shape const& shape = frame.shape;
    routing const kept = routing_of(frame, token);
    int const k = t.lane();
    if (k < shape.topk) {
      std::int32_t const choice = kept.choices[k];
      weight = kept.weights[k];
      if (choice >= 0) {
        rank = kept.owners[choice];
        // At most 64 ranks and 2^20 experts: the product fits 32 bits.
        local = choice - static_cast<std::int32_t>(static_cast<std::uint32_t>(rank) *
                                                   static_cast<std::uint32_t>(shape.experts) /
                                                   static_cast<std::uint32_t>(shape.ranks));
      }
    }
    for (int i = 0; i < shape.topk; ++i) {
      std::int32_t const r = t.broadcast(rank, i);
      if (r >= 0) ranks.bits |= std::uint64_t{1} << r;
    }
  }
  /// The choices that name an expert.
  FERRY_FN number_set choices(Team const& t) const {
    return {static_cast<std::uint64_t>(t.ballot(rank >= 0))};
  }
};

}  // namespace ferry
