// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The receiving half of combine: each own token's rows are summed.
#pragma once

#include <ferry/kernels/columns.hpp>
#include <ferry/kernels/route.hpp>
#include <ferry/kernels/step.hpp>
#include <ferry/transport/delivery.hpp>

namespace ferry {

/// Sums the rows that came home for each own token: the ranks' partial sums in ascending rank order
/// (per_rank), or the experts' rows in choice order, weighted here (per_choice). In f32, by fma, so
/// that the order alone decides the bits. Adds one more row last, if there is one.
struct gather_rows {
  step_frame frame;
  std::byte* output = nullptr;  ///< [T, hidden] of `type`
  std::int64_t output_stride = 0;
  std::byte const* added = nullptr;  ///< [T, hidden] of `type`, or null
  std::int64_t added_stride = 0;
  dtype type = dtype::bf16;
  int round = 0;
  bool skip = false;  ///< a released step: nothing comes home, only the step counter advances

  template <team Team, delivery<Team> Net>
  FERRY_FN void operator()(Team const& t, Net const& net) const {
    int const rounds = *frame.memory.rounds;
    if (round >= rounds) return;
    step_clock const clock(t, frame, phase::gather, round == 0);
    if (!skip) {
      int const tokens = frame.tokens_in_round(*frame.memory.num_tokens, round);
      strided const part = dealt(t.block() * t.count() + t.index(), t.blocks() * t.count(), tokens);
      for (int i = part.first; i < part.end; i += part.step)
        if (!gather_token(t, net, i, clock.combine(round, rounds))) return;
    }
    clock.finish(t);
  }

 private:
  template <team Team, delivery<Team> Net>
  FERRY_FN bool gather_token(Team const& t, Net const& net, int in_round,
                             std::uint64_t epoch) const {
    int const token = round * frame.shape.round_tokens + in_round;
    routing const route = routing_of(frame, token);
    int const chunk = in_round / frame.shape.chunk_tokens;
    for (int d = route.next_rank(-1); d >= 0; d = route.next_rank(d)) {
      std::uint64_t seen;
      if (!t.wait({flag::back, d, chunk, epoch},
                  own_word(net, frame.chunk_flag(slot_field::back, d, chunk)), seen))
        return false;
    }
    returned_rows const rows = rows_of(route, in_round);
    visit_float_type(type, [&]<class T>(T) {
      for_each_tile(t, frame.shape.hidden, [&](int column, int n) {
        float sum[Team::columns] = {};
        for (int i = 0; i < rows.count; ++i)
          add_wire(frame.shape.returned, net.own() + frame.at(slot_field::returned, rows.items[i]),
                   net.own() + frame.at(slot_field::returned_scales, rows.items[i]), column, n,
                   rows.weights[i], sum);
        if (added) add_row_columns<T>(added + token * added_stride, column, n, 1.0f, sum);
        store_columns<T>(output + token * output_stride, column, n, sum);
      });
    });
    return true;
  }

  // The rows that come home for a token, in the order of the sum. Found once: a row has many tiles.
  struct returned_rows {
    std::size_t items[max_topk];
    float weights[max_topk];
    int count = 0;

    FERRY_FN void add(std::size_t item, float weight) {
      items[count] = item;
      weights[count++] = weight;
    }
  };
  FERRY_FN returned_rows rows_of(routing const& route, int in_round) const {
    returned_rows rows;
    auto const tokens = static_cast<std::size_t>(frame.shape.round_tokens);
    auto const token = static_cast<std::size_t>(in_round);
    auto const topk = static_cast<std::size_t>(frame.shape.topk);
    if (!frame.shape.per_choice) {
      for (int d = route.next_rank(-1); d >= 0; d = route.next_rank(d))
        rows.add(static_cast<std::size_t>(d) * tokens + token, 1.0f);
      return rows;
    }
    for (std::size_t k = 0; k < topk; ++k)
      if (route.choices[k] >= 0) rows.add(token * topk + k, route.weights[k]);
    return rows;
  }
};

}  // namespace ferry
