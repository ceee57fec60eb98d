// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// An exchange whose ranks are threads and reach each other through a transport of the test's
/// choice, with an oracle.
#pragma once

#include <ferry/exchange.hpp>
#include <ferry/transport/shared_memory.hpp>
#include <ferry/transport/transport.hpp>

#include "exchange/exchange_state.hpp"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace ferry::test {

/// Makes the transport of a rank over the windows of all.
using transport_maker =
    std::function<std::unique_ptr<transport>(int rank, std::vector<mapped_window> windows)>;

struct carry_settings {
  int ranks = 3;
  int steps = 25;
  int round_tokens = 0;
  std::chrono::milliseconds timeout{20000};
  std::function<void(int step)> before_step = {};
};

/// What became of it: by rank, the first error, and the code of it when a call returned it.
struct carried {
  explicit carried(carry_settings const& s)
      : asked(s),
        errors(static_cast<std::size_t>(s.ranks)),
        codes(errors.size()),
        longest_call(errors.size()) {}
  carry_settings asked;
  int steps = 0;  ///< that were right, all ranks together
  std::vector<std::string> errors;
  std::vector<std::optional<error_code>> codes;
  std::vector<std::chrono::milliseconds> longest_call;
};

/// One rank's half of it. Rows hold whole numbers that tell their source, token, step and column;
/// every expert is another affine function.
class carried_rank {
 public:
  static constexpr int hidden = 40, topk = 2, max_tokens = 7;

  carried_rank(carry_settings const& s, group g, int rank, std::vector<window> const& windows,
               transport_maker const& make)
      : settings_(s), rank_(rank) {
    exchange_options& o = core_.options;
    o.num_experts = experts_of(s);
    o.topk = topk;
    o.hidden = hidden;
    o.max_tokens = max_tokens;
    o.tokens = o.expert_rows = o.output = dtype::f32;
    o.wire = o.combine_wire = wire::f32;
    o.num_microbatches = 1;
    o.round_tokens = s.round_tokens;
    o.chunk_tokens = 2;
    o.via = reach::network;
    o.timeout = s.timeout;
    core_.ranks = std::move(g);
    core_.shape = shape_of(o, rank, s.ranks);
    core_.layout = positions_of(o, core_.shape).value();
    core_.window = lay_out_window(core_.shape, 1);
    core_.receives_fnuz.resize(static_cast<std::size_t>(s.ranks));
    core_.kernels = &cpu_kernels_for(chosen_code_level().value());
    for (int e = 0; e < o.num_experts; ++e)
      core_.owners.push_back(owner_of(e, s.ranks, o.num_experts));
    std::size_t const asleep = core_.window.offset(window_field::asleep);
    std::vector<mapped_window> reached;
    for (int r = 0; r < s.ranks; ++r) {
      window const& w = windows[static_cast<std::size_t>(r)];
      core_.readable.push_back(w.data());
      core_.mapped.push_back(r == rank ? w.data() : nullptr);
      reached.push_back({w.bytes(), asleep});
    }
    core_.out = std::make_unique<outbox>(make(rank, std::move(reached)), s.ranks, 1 << 14,
                                         core_.waits(0).timeout);
    auto slot = std::make_unique<microbatch::state>(core_, 0);
    slot->allocate().value();
    slot->waits = std::make_unique<waiter>(
        core_.waits(0),
        reinterpret_cast<std::uint32_t*>(windows[static_cast<std::size_t>(rank)].data() + asleep),
        core_.status_of(rank), [this](awaited const& what, bool expired, failure& found) {
          return look_at_peers(core_, what, expired, found);
        });
    slot_ = std::make_unique<microbatch>(std::move(slot));
  }

  static std::size_t window_bytes(carry_settings const& s) {
    exchange_options o;
    o.num_experts = experts_of(s);
    o.topk = topk;
    o.hidden = hidden;
    o.max_tokens = max_tokens;
    o.wire = o.combine_wire = wire::f32;
    o.num_microbatches = 1;
    o.round_tokens = s.round_tokens;
    o.chunk_tokens = 2;
    return lay_out_window(shape_of(o, 0, s.ranks), 1).bytes();
  }

  /// Takes steps until one goes wrong.
  void run(carried& into, std::atomic<int>& steps_right) {
    auto const i = static_cast<std::size_t>(rank_);
    for (int n = 1; n <= settings_.steps; ++n) {
      if (settings_.before_step) settings_.before_step(n);
      result<void> const r = step(n, into.longest_call[i]);
      if (!r) {
        into.codes[i] = r.error().code;
        into.errors[i] = r.error().message;
        return;
      }
      if (!wrong_.empty()) {
        into.errors[i] = "wrong data: " + wrong_;
        return;
      }
      ++steps_right;
    }
  }

  /// What a rank brings to step n.
  struct plan {
    std::vector<std::int32_t> ids;
    std::vector<float> weights;
    int tokens() const { return static_cast<int>(ids.size()) / topk; }
  };
  static plan plan_of(carry_settings const& s, int n, int rank) {
    std::minstd_rand random(static_cast<unsigned>(n * 97 + rank * 13 + 1));
    random.discard(8);
    plan p;
    int const tokens = static_cast<int>(random() % (max_tokens + 1));
    for (int i = 0; i < tokens * topk; ++i) {
      int const e = static_cast<int>(random() % static_cast<unsigned>(experts_of(s) + 1)) - 1;
      p.ids.push_back(e);
      p.weights.push_back(static_cast<float>(1 + random() % 3));
    }
    return p;
  }
  static int experts_of(carry_settings const& s) { return 2 * s.ranks + 1; }

 private:
  static float value(int n, int rank, int token, int column) {
    return static_cast<float>(((n % 50 * 4 + rank) * 8 + token) * 64 + column);
  }
  static float expert(int e, float x) {
    return static_cast<float>(e + 1) * x + static_cast<float>(5 * e);
  }
  void complain(std::string what) {
    if (wrong_.empty()) wrong_ = std::move(what);
  }

  template <class Call>
  static auto timed(Call const& call, std::chrono::milliseconds& longest) {
    auto const start = std::chrono::steady_clock::now();
    auto r = call();
    longest = std::max(longest, std::chrono::duration_cast<std::chrono::milliseconds>(
                                    std::chrono::steady_clock::now() - start));
    return r;
  }

  result<void> step(int n, std::chrono::milliseconds& longest) {
    plan const p = plan_of(settings_, n, rank_);
    int const tokens = p.tokens();
    std::vector<float> x(static_cast<std::size_t>(tokens * hidden)), y(x.size());
    for (int t = 0; t < tokens; ++t)
      for (int c = 0; c < hidden; ++c)
        x[static_cast<std::size_t>(t * hidden + c)] = value(n, rank_, t, c);
    dispatch_input input;
    input.tokens = rows_of(x.data(), tokens, hidden);
    input.choices = dense(p.ids.data(), tokens, topk);
    input.weights = dense(p.weights.data(), tokens, topk);
    auto const sent = timed([&] { return slot_->dispatch_send(queue_, input); }, longest);
    if (!sent) return sent.error();
    auto const in = timed([&] { return slot_->dispatch_receive(queue_); }, longest);
    if (!in) return in.error();
    std::vector<float> made = run_experts(n, *in);
    auto const back = timed(
        [&] {
          return slot_->combine_send(
              queue_,
              rows_of(made.data(), static_cast<std::int64_t>(made.size()) / hidden, hidden));
        },
        longest);
    if (!back) return back.error();
    auto const summed = timed(
        [&] { return slot_->combine_receive(queue_, rows_of(y.data(), tokens, hidden)); }, longest);
    if (!summed) return summed.error();
    check_sums(n, p, y);
    return {};
  }

  // Rows are compared with the routing of all ranks, never with the kernel's counts.
  std::vector<float> run_experts(int n, received const& in) {
    std::vector<float> made(static_cast<std::size_t>(in.capacity) * hidden);
    int position = 0;
    for (int e = in.first_expert; e < in.first_expert + in.num_local_experts; ++e)
      for (int source = 0; source < settings_.ranks; ++source) {
        plan const p = plan_of(settings_, n, source);
        for (std::size_t c = 0; c < p.ids.size(); ++c) {
          if (p.ids[c] != e) continue;
          int const token = static_cast<int>(c) / topk;
          auto const* const row = reinterpret_cast<float const*>(in.rows[position]);
          for (int j = 0; j < hidden; ++j) {
            if (row[j] != value(n, source, token, j))
              complain(fmt::format("step {}, rank {}: expert {}, token {} of rank {}: {}", n, rank_,
                                   e, token, source, row[j]));
            made[static_cast<std::size_t>(position * hidden + j)] = expert(e, row[j]);
          }
          ++position;
        }
      }
    if (position != *in.end)
      complain(fmt::format("step {}: {} rows instead of {}", n, *in.end, position));
    return made;
  }

  void check_sums(int n, plan const& p, std::vector<float> const& y) {
    for (std::size_t i = 0; i < y.size(); ++i) {
      int const token = static_cast<int>(i) / hidden, column = static_cast<int>(i) % hidden;
      float wanted = 0;
      for (std::size_t k = 0; k < topk; ++k) {
        std::size_t const at = static_cast<std::size_t>(token * topk) + k;
        if (p.ids[at] >= 0)
          wanted += p.weights[at] * expert(p.ids[at], value(n, rank_, token, column));
      }
      if (y[i] != wanted)
        complain(fmt::format("step {}, rank {}: token {} is {} instead of {}", n, rank_, token,
                             y[i], wanted));
    }
  }

  carry_settings settings_;
  int rank_;
  exchange_core core_;
  queue queue_;
  std::unique_ptr<microbatch> slot_;
  std::string wrong_;
};

/// Runs all ranks and waits for them.
inline carried carry_exchange(transport_maker const& make, carry_settings const& s) {
  carried into(s);
  std::vector<window> windows;
  for (int r = 0; r < s.ranks; ++r)
    windows.push_back(window::plain(carried_rank::window_bytes(s)).value());
  std::atomic<int> steps_right{0};
  thread_ranks const meeting = threads(s.ranks);
  std::vector<std::thread> ranks;
  for (int r = 0; r < s.ranks; ++r)
    ranks.emplace_back([&, r] {
      // Meeting is not what the deadline is about: threads may start late on a loaded machine.
      group const g = join(meeting.rank(r), {.timeout = std::chrono::seconds(60)}).value();
      carried_rank rank(s, g, r, windows, make);
      // Windows are zero before anybody writes (R1).
      if (result<void> const all_here = g.barrier(); !all_here) {
        into.errors[static_cast<std::size_t>(r)] = all_here.error().message;
        return;
      }
      rank.run(into, steps_right);
    });
  for (std::thread& t : ranks) t.join();
  into.steps = steps_right;
  return into;
}

}  // namespace ferry::test
