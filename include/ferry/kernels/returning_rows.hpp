// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The forms in which rows go home in combine: through memory, or through registers.
#pragma once

#include <ferry/kernels/columns.hpp>
#include <ferry/kernels/pieces.hpp>
#include <ferry/kernels/route.hpp>
#include <ferry/kernels/step.hpp>
#include <ferry/transport/delivery.hpp>

namespace ferry {

/// What the experts made, as the caller gave it.
struct expert_rows {
  std::byte const* data = nullptr;  ///< [positions, hidden] of `type`
  std::int64_t stride = 0;          ///< bytes
  dtype type = dtype::bf16;
};

/// Instead of a choice: all of a token's.
inline constexpr int all_choices = -1;

/// Sums in the team's scratch. Takes every type and format, and rows at any address.
template <team Team>
class memory_sums {
 public:
  static constexpr bool waits_for_stores = false;
  /// Whether rows may be sums already.
  static constexpr bool takes_token_sums = true;

  /// Where a token's choices lie among the received rows; or which row is its sum already.
  struct planned {
    FERRY_FN planned(Team const&, step_frame const& frame, std::size_t at)
        : positions(frame.memory.plan + at), weights(frame.memory.plan_weights + at) {}
    FERRY_FN bool is_here(Team const&, int k) const { return positions[k] != not_here; }
    std::int32_t const* positions;
    float const* weights;
    std::int32_t sum = -1;
  };

  FERRY_FN memory_sums(step_frame const& frame, expert_rows const& rows)
      : frame_(frame), receives_fnuz_(frame.memory.receives_fnuz), rows_(rows) {}
  FERRY_FN int parts() const { return 1; }

  /// Choice k's row as it is; `all_choices`: the weighted sum of those that are here, in choice
  /// order. A row that is a sum already goes from where it lies, unless it has to be converted.
  template <delivery<Team> Net>
  FERRY_FN void put(Team const& t, Net const& net, planned const& plan, int k, int, int source,
                    std::size_t item) const {
    if (plan.sum >= 0 && element_of(frame_.shape.returned) == rows_.type) {
      net.put(t, source, frame_.at(slot_field::returned, item),
              rows_.data + plan.sum * rows_.stride, frame_.shape.home_bytes);
      return;
    }
    make_row(t, plan, k, format_for(source));
    put_row(t, net, source, item);
  }

 private:
  FERRY_FN row_place place_in(std::byte* scratch) const {
    return {scratch, scratch + round_up(frame_.shape.home_bytes, row_align), nullptr};
  }

  // What the token's owner reads.
  FERRY_FN wire format_for(int source) const {
    if (!frame_.shape.returns_both()) return frame_.shape.returned;
    return e4m3_wire(receives_fnuz_[source] != std::byte{0});
  }

  // Called at one place: what it becomes is long, one loop for each type and format.
  FERRY_FN void make_row(Team const& t, planned const& plan, int which, wire format) const {
    row_place const to = place_in(t.row_scratch());
    bool const all = which == all_choices && plan.sum < 0;
    std::int32_t const one = all ? -1 : plan.sum >= 0 ? plan.sum : plan.positions[which];
    t.sync();
    visit_float_type(rows_.type, [&]<class T>(T) FERRY_INLINED {
      for_each_tile(t, frame_.shape.hidden, [&](int column, int n) FERRY_INLINED {
        float sum[Team::columns] = {};
        for (int k = 0; k < (all ? frame_.shape.topk : 1); ++k) {
          std::int32_t const position = all ? plan.positions[k] : one;
          if (position < 0) continue;
          add_row_columns<T>(rows_.data + position * rows_.stride, column, n,
                             all ? plan.weights[k] : 1.0f, sum);
        }
        store_wire(t, format, to, column, n, sum);
      });
    });
    t.sync();
  }

  template <delivery<Team> Net>
  FERRY_FN void put_row(Team const& t, Net const& net, int source, std::size_t item) const {
    row_place const from = place_in(t.row_scratch());
    net.put(t, source, frame_.at(slot_field::returned, item), from.row, frame_.shape.home_bytes);
    if (frame_.shape.home_scale_bytes)
      net.put(t, source, frame_.at(slot_field::returned_scales, item), from.scales,
              frame_.shape.home_scale_bytes);
  }

  step_frame const& frame_;
  std::byte const* receives_fnuz_;
  expert_rows rows_;
};

/// bf16 rows summed in registers and sent home as bf16. Rows and their stride are multiples of 16
/// bytes.
template <team Team>
class bf16_sums {
 public:
  static constexpr bool waits_for_stores = true;
  static constexpr bool takes_token_sums = false;  // they are copies: memory serves as well

  /// A token's choices, one on each lane, read once.
  struct planned {
    FERRY_FN planned(Team const& t, step_frame const& frame, std::size_t at) {
      if (t.lane() < frame.shape.topk) {
        position = frame.memory.plan[at + static_cast<std::size_t>(t.lane())];
        weight = frame.memory.plan_weights[at + static_cast<std::size_t>(t.lane())];
      }
      here.bits = static_cast<std::uint64_t>(t.ballot(position != not_here));
      with_rows.bits = static_cast<std::uint64_t>(t.ballot(position >= 0));
    }
    FERRY_FN bool is_here(Team const&, int k) const { return here.has(k); }
    std::int32_t position = not_here;
    float weight = 0.0f;
    number_set here;       ///< choices served here; the same on all lanes
    number_set with_rows;  ///< those of them that found room
  };

  FERRY_FN bf16_sums(step_frame const& frame, expert_rows const& rows)
      : frame_(frame), rows_(rows) {}
  FERRY_FN int parts() const { return row_part::count<Team, Team::row_pieces>(pieces()); }

  /// Choice k's row as it is; `all_choices`: the weighted sum of those that are here, in choice
  /// order.
  template <delivery<Team> Net>
  FERRY_FN void put(Team const& t, Net const& net, planned const& plan, int k, int part, int source,
                    std::size_t item) const {
    // Two calls: in one, the flag that tells them apart costs the registers that are missing then.
    if (k == all_choices)
      put_rows(t, net, plan, plan.with_rows, false, part, source, item);
    else
      put_rows(t, net, plan, {plan.with_rows.bits & std::uint64_t{1} << k}, true, part, source,
               item);
  }

 private:
  FERRY_FN int pieces() const { return static_cast<int>(frame_.shape.home_bytes / sizeof(piece)); }

  template <delivery<Team> Net>
  FERRY_FN void put_rows(Team const& t, Net const& net, planned const& plan, number_set choices,
                         bool as_they_are, int part, int source, std::size_t item) const {
    constexpr int held = Team::row_pieces;
    row_part const which = row_part::of<Team, held>(part, pieces());
    float sum[held][8] = {};
    for (; !choices.empty(); choices.drop_first()) {
      int const k = choices.first();
      std::int64_t const position = t.broadcast(plan.position, k);
      float const weight = as_they_are ? 1.0f : t.broadcast(plan.weight, k);
      piece v[held];
      load_part(t, which, rows_.data + position * rows_.stride, v);
      FERRY_UNROLL
      for (int j = 0; j < held; ++j) add_bf16(weight, v[j], sum[j]);
    }
    piece row[held];
    FERRY_UNROLL
    for (int j = 0; j < held; ++j) row[j] = pack_bf16(sum[j]);
    put_part(t, net, which, source, frame_.at(slot_field::returned, item), row);
  }

  step_frame const& frame_;
  expert_rows rows_;
};

}  // namespace ferry
