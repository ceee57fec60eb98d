// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The receiving half of combine: each own token's rows are summed.
#pragma once

#include <ferry/kernels/columns.hpp>
#include <ferry/kernels/gathered_rows.hpp>
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

  /// One row after the other is added, element by element.
  template <team Team, delivery<Team> Net>
  FERRY_FN void operator()(Team const& t, Net const& net) const {
    run<memory_gather>(t, net);
  }

  /// Rows are read in one of the forms of gathered_rows.hpp, which row_forms.hpp chooses from.
  template <template <class> class Rows, team Team, delivery<Team> Net>
  FERRY_FN void run(Team const& t, Net const& net) const {
    int const rounds = *frame.memory.rounds;
    if (round >= rounds) return;
    step_clock const clock(t, frame, phase::gather, round == 0);
    if (!skip) gather_tokens<Rows<Team>>(t, net, clock.combine(round, rounds));
    clock.finish(t);
  }

 private:
  template <class Rows, team Team, delivery<Team> Net>
  FERRY_FN void gather_tokens(Team const& t, Net const& net, std::uint64_t epoch) const {
    Rows const rows(frame, {output, output_stride, added, added_stride, type});
    int const tokens = frame.tokens_in_round(*frame.memory.num_tokens, round);
    int const parts = rows.parts();
    strided const items =
        dealt(t.block() * t.count() + t.index(), t.blocks() * t.count(), tokens * parts);
    for (int i = items.first; i < items.end; i += items.step) {
      int const in_round = i / parts;
      typename Rows::sources const from(t, frame, round * frame.shape.round_tokens + in_round);
      if (!wait_for_rows(t, net, from, in_round, epoch)) return;
      rows.gather(t, net.own_rows(), from, in_round, round * frame.shape.round_tokens + in_round,
                  i - in_round * parts);
    }
  }

  template <class Sources, team Team, delivery<Team> Net>
  FERRY_FN bool wait_for_rows(Team const& t, Net const& net, Sources const& from, int in_round,
                              std::uint64_t epoch) const {
    int const chunk = in_round / frame.shape.chunk_tokens;
    return from.wait_for_each(t, [&](int d) FERRY_INLINED {
      std::uint64_t seen;
      return t.wait({flag::back, d, chunk, epoch},
                    own_word(net, frame.chunk_flag(flag_field::back, d, chunk)), seen);
    });
  }
};

}  // namespace ferry
