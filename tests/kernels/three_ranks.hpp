// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Three ranks with two experts each, rows of one f32, top-2, at most four tokens in chunks of two:
/// small enough to say by hand what lies where.
#pragma once

#include "kernels/all_ranks.hpp"

namespace ferry::oracle {

inline world three_rank_world(exchange_options changed = {}) {
  world w;
  w.ranks = 3;
  w.options = {.num_experts = 6,
               .topk = 2,
               .hidden = 1,
               .max_tokens = 4,
               .tokens = dtype::f32,
               .wire = wire::f32,
               .expert_rows = dtype::f32,
               .combine_wire = wire::f32,
               .output = dtype::f32,
               .layout = changed.layout,
               .reduction = changed.reduction,
               .capacity = changed.capacity,
               .num_microbatches = 1,
               .chunk_tokens = 2};
  w.fnuz.assign(3, false);
  return w;
}

struct three_ranks {
  world w;
  all_ranks ranks;
  std::vector<float> rows = {10, 11, 12, 13};  ///< of every rank's tokens 0..3
  std::vector<float> weights = {1, 1.5f, 2, 2.5f, 3, 3.5f, 4, 4.5f};
  std::vector<std::vector<std::int32_t>> ids = std::vector<std::vector<std::int32_t>>(3);

  explicit three_ranks(exchange_options changed = {})
      : w(three_rank_world(changed)), ranks(w, code_level::v2) {}

  /// Rank r sends tokens with these choices, two each.
  void send(int r, std::vector<std::int32_t> choices) {
    auto& mine = ids[static_cast<std::size_t>(r)];
    mine = std::move(choices);
    std::int64_t const tokens = static_cast<std::int64_t>(mine.size()) / 2;
    ranks.run(r, ranks.sending(r, {.tokens = rows_of(rows.data(), tokens, 1),
                                   .choices = dense(mine.data(), tokens, 2),
                                   .weights = dense(weights.data(), tokens, 2)}));
  }
  void receive(int r) { ranks.run(r, receive_rows{ranks.rank(r).frame(), 0}); }
  void give_back(int r, std::vector<float> const& made) {
    ranks.run(r, return_rows{.frame = ranks.rank(r).frame(),
                             .rows = reinterpret_cast<std::byte const*>(made.data()),
                             .row_stride = 4,
                             .type = dtype::f32});
  }
  /// Returns what lies in the output afterwards; -1 where nothing was written.
  std::vector<float> gather(int r, std::size_t tokens) {
    std::vector<float> out(tokens, -1.0f);
    ranks.run(r, gather_rows{.frame = ranks.rank(r).frame(),
                             .output = reinterpret_cast<std::byte*>(out.data()),
                             .output_stride = 4,
                             .type = dtype::f32});
    return out;
  }
  /// A first step of one token a rank that goes nowhere.
  void finish_step() {
    for (int r = 0; r < 3; ++r) send(r, {-1, -1});
    for (int r = 0; r < 3; ++r) receive(r);
    ranks.release();
  }

  template <class T>
  T const* at(int r, std::size_t offset) {
    return reinterpret_cast<T const*>(ranks.rank(r).window.data() + offset);
  }
  step_frame const& frame() { return ranks.rank(0).frame(); }
  float row_at(int d, int source, int token) {
    return *at<float>(d, frame().at(slot_field::rows, source, token));
  }
  std::vector<std::int32_t> route_at(int d, int source, int token) {
    auto const* k = at<std::int32_t>(d, frame().at(slot_field::routes, source, token));
    return {k, k + 2};
  }
  std::vector<float> weights_at(int d, int source, int token) {
    auto const* k = at<float>(d, frame().at(slot_field::routes, source, token)) + 2;
    return {k, k + 2};
  }
  std::vector<std::uint32_t> counts(int d, int source) {
    auto const* n =
        at<std::uint32_t>(d, frame().at(slot_field::counts, static_cast<std::size_t>(source)));
    return {n, n + 2};
  }
  std::uint64_t header(int d, int source) {
    return *at<std::uint64_t>(d, frame().line_head(flag_field::arrived, source));
  }
  std::uint64_t arrived(int d, int source, int chunk) {
    return *at<std::uint64_t>(d, frame().chunk_flag(flag_field::arrived, source, chunk));
  }
  std::uint64_t& done(int d, int from) {
    return ranks.rank(d).word(frame().line_head(flag_field::back, from));
  }
  std::uint64_t& back(int d, int from, int chunk) {
    return ranks.rank(d).word(frame().chunk_flag(flag_field::back, from, chunk));
  }
  std::uint64_t tally_of(int r, tally t) {
    return ranks.rank(r).memory().tallies[static_cast<int>(t)];
  }
  failure failed(int r) { return ranks.rank(r).waits->what_failed(); }
  bool has_failed(int r) { return ranks.rank(r).waits->failed(); }
};

}  // namespace ferry::oracle
