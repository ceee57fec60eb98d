// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// What ranks bring to a step, and what must come of it. Every column of every row tells where it
// comes from, every expert is another affine function, and all numbers are small integers: any row
// that is stale, lost, doubled, torn or swapped shows.

#include "protocol/stepped_exchange.hpp"

#include <fmt/format.h>

namespace ferry::protocol_test {
namespace {

float token_value(int slot, int n, int source, int token, int column) {
  return static_cast<float>(((n * 2 + slot) * 4 + source) * 64 + token * 8 + column);
}

float expert_value(int expert, float x) {
  return static_cast<float>(expert + 2) * x + static_cast<float>(7 * expert + 1);
}

// A run is a function of its seed, so each of these streams must not depend on the schedule.
chance stream(std::uint64_t seed, int slot, int n, int rank) {
  return chance((seed << 24) + (static_cast<std::uint64_t>(slot) << 20) +
                (static_cast<std::uint64_t>(n) << 8) + static_cast<std::uint64_t>(rank));
}

}  // namespace

step_plan run::plan(int slot, int n, int rank) const {
  chance random = stream(seed, slot, n, rank);
  step_plan p;
  p.tokens = random.once_in(5) ? 0 : random.below(shape.max_tokens + 1);
  // Few targets in some steps, so that chunks and whole ranks go without a token.
  int const favourite = random.once_in(3) ? random.below(num_experts()) : -1;
  for (int t = 0; t < p.tokens; ++t) {
    bool const nowhere = random.once_in(6);
    for (int k = 0; k < topk; ++k) {
      bool const none = nowhere || random.once_in(6);
      int const e = favourite >= 0 ? favourite : random.below(num_experts());
      p.ids.push_back(none ? -1 : e);
      p.weights.push_back(static_cast<float>(1 + random.below(3)));
    }
  }
  return p;
}

bool run::is_released(int slot, int n) const {
  return shape.release_some && stream(seed, slot, n, 200).once_in(8);
}

bool conduct::send(stepped_rank& r, int slot, int n) {
  auto const i = static_cast<std::size_t>(slot);
  r.plans[i] = r.all.plan(slot, n, r.index);
  step_plan const& p = r.plans[i];
  std::vector<float>& x = r.tokens[i];
  x.resize(static_cast<std::size_t>(p.tokens) * hidden);
  for (int t = 0; t < p.tokens; ++t)
    for (int c = 0; c < hidden; ++c)
      x[static_cast<std::size_t>(t * hidden + c)] = token_value(slot, n, r.index, t, c);
  dispatch_input input;
  input.tokens = rows_of(x.data(), p.tokens, hidden);
  input.choices = dense(p.ids.data(), p.tokens, topk);
  input.weights = dense(p.weights.data(), p.tokens, topk);
  result<void> const sent = r.slots[i].dispatch_send(r.work_queue, input);
  if (!sent) r.all.report(outcome::refused, sent.error().message);
  return !r.all.stopped();
}

bool conduct::receive(stepped_rank& r, int slot, int n) {
  auto const i = static_cast<std::size_t>(slot);
  result<received> const in = r.slots[i].dispatch_receive(r.work_queue);
  if (!in) {
    r.all.report(outcome::refused, in.error().message);
    return false;
  }
  if (!r.all.stopped()) r.all.check_received(r, slot, n, *in);
  return !r.all.stopped();
}

// The received set is compared with the routing, never with the kernel's own counts. Then the
// experts run on whatever is there.
void run::check_received(stepped_rank& r, int slot, int n, received const& in) {
  auto const complain = [&](std::string const& text) {
    report(outcome::wrong_data, fmt::format("rank {} received, step {}: {}", r.index, n, text));
  };
  std::vector<float>& made = r.made[static_cast<std::size_t>(slot)];
  int position = 0;
  for (int e = 0; e < in.num_local_experts; ++e) {
    int const expert = in.first_expert + e;
    if (shape.layout == layout::padded) position = e * static_cast<int>(r.core.layout.per_expert);
    if (in.starts[e] != position)
      complain(fmt::format("expert {} starts at {} instead of {}", expert, in.starts[e], position));
    for (int source = 0; source < shape.ranks; ++source) {
      step_plan const p = plan(slot, n, source);
      for (std::size_t c = 0; c < p.ids.size(); ++c) {
        if (p.ids[c] != expert) continue;
        order.pause();
        if (stopped()) return;
        if (position >= in.starts[e] + in.counts[e]) {
          complain(fmt::format("expert {} has only {} rows", expert, in.counts[e]));
          return;
        }
        int const token = static_cast<int>(c) / topk;
        auto const* const row = reinterpret_cast<float const*>(
            in.rows[in.index ? in.index[position] : std::int32_t{position}]);
        for (int j = 0; j < hidden; ++j) {
          float const wanted = token_value(slot, n, source, token, j);
          if (row[j] != wanted)
            complain(fmt::format("expert {}, token {} of rank {}, column {}: {} instead of {}",
                                 expert, token, source, j, row[j], wanted));
          made[static_cast<std::size_t>(position * hidden + j)] = expert_value(expert, row[j]);
        }
        ++position;
      }
    }
    if (in.starts[e] + in.counts[e] != position)
      complain(fmt::format("expert {} has {} rows too many", expert,
                           in.starts[e] + in.counts[e] - position));
  }
}

bool conduct::give_back(stepped_rank& r, int slot, int n) {
  auto const i = static_cast<std::size_t>(slot);
  bool const released = r.all.is_released(slot, n);
  result<void> const sent =
      released ? r.slots[i].release(r.work_queue)
               : r.slots[i].combine_send(r.work_queue,
                                         rows_of(r.made[i].data(), r.core.layout.capacity, hidden));
  if (!sent) r.all.report(outcome::refused, sent.error().message);
  // The rows are the caller's again, unless later rounds return from them.
  if (released || r.core.shape.max_rounds() == 1)
    std::fill(r.made[i].begin(), r.made[i].end(), -1.0f);
  return !r.all.stopped();
}

bool conduct::gather(stepped_rank& r, int slot, int n) {
  if (r.all.is_released(slot, n)) return true;
  auto const i = static_cast<std::size_t>(slot);
  int const tokens = r.plans[i].tokens;
  r.output[i].assign(static_cast<std::size_t>(tokens) * hidden, -1.0f);
  result<void> const summed =
      r.slots[i].combine_receive(r.work_queue, rows_of(r.output[i].data(), tokens, hidden));
  if (!summed) r.all.report(outcome::refused, summed.error().message);
  if (!r.all.stopped()) r.all.check_output(r, slot, n);
  return !r.all.stopped();
}

void run::check_output(stepped_rank& r, int slot, int n) {
  step_plan const p = plan(slot, n, r.index);
  for (int t = 0; t < p.tokens; ++t)
    for (int c = 0; c < hidden; ++c) {
      float wanted = 0;
      for (int k = 0; k < topk; ++k) {
        auto const at = static_cast<std::size_t>(t * topk + k);
        if (p.ids[at] >= 0)
          wanted += p.weights[at] * expert_value(p.ids[at], token_value(slot, n, r.index, t, c));
      }
      float const got =
          r.output[static_cast<std::size_t>(slot)][static_cast<std::size_t>(t * hidden + c)];
      if (got != wanted)
        report(outcome::wrong_data,
               fmt::format("rank {} summed, step {}: token {}, column {}: {} instead of {}",
                           r.index, n, t, c, got, wanted));
    }
}

}  // namespace ferry::protocol_test
