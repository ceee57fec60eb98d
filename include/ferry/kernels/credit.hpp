// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// How a step of several rounds hands its inboxes back between them.
#pragma once

#include <ferry/kernels/step.hpp>
#include <ferry/transport/delivery.hpp>

namespace ferry {

/// After a round's rows are laid out: tells every source that its inbox may be overwritten. Only
/// steps of several rounds need it; a step of one round says `done` when it returns.
struct credit_round {
  step_frame frame;
  int round = 0;

  template <team Team, delivery<Team> Net>
  FERRY_FN void operator()(Team const& t, Net const& net) const {
    int const rounds = *frame.memory.rounds;
    if (rounds == 1 || round >= rounds || t.failed()) return;
    // The step's counters have advanced already: this reads the same base as rounds after the
    // first.
    step_clock const clock(t, frame, phase::receive, false);
    if (t.block() != 0 || t.index() != 0) return;
    net.release(t);
    for (int s = t.lane(); s < frame.shape.ranks; s += Team::lanes)
      net.publish(t, s, flag::done, frame.line_head(flag_field::back, frame.shape.rank),
                  clock.drained(round, rounds));
  }
};

}  // namespace ferry
