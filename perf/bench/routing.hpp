// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Who chooses which experts, made anew from a seed on every rank alike.
#pragma once

#include "bench_case.hpp"

#include <ferry/balance/routing_trace.hpp>
#include <ferry/result.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace ferry::bench {

/// The choices of all ranks' tokens: [ranks, tokens, topk] expert ids, -1 where there is none.
///   uniform        topk different experts, all equally likely
///   power_law      topk different experts; the i-th most popular is chosen in proportion to 1/i,
///                  and which experts are popular has nothing to do with where they live
///   group_limited  experts are in 8 groups; a token draws 4 of them, then topk experts of these
///   all_to_one     different experts of rank 0; -1 where it has fewer than topk
/// Errors   invalid_argument the experts cannot be chosen in this way
result<std::vector<std::int32_t>> make_choices(bench_case const& c, std::uint64_t seed);

/// Choices that were recorded, and the file they came from.
struct recorded_choices {
  std::string file;
  routing_trace trace;
};

/// The same of recorded choices, rank r's tokens from row r * tokens on.
/// Errors   invalid_argument there is no such layer, there are too few tokens or another topk, or
///          one names an expert that is none
result<std::vector<std::int32_t>> take_choices(bench_case const& c, recorded_choices const& from);

/// Where the choices lead: what all programs of a case work on.
struct routes {
  int ranks, tokens, topk, experts;
  std::vector<std::int32_t> ids;     ///< [ranks, tokens, topk]
  std::vector<std::int32_t> owners;  ///< [experts]

  std::int32_t const* of(int source, int token) const {
    return ids.data() + (static_cast<std::size_t>(source) * static_cast<std::size_t>(tokens) +
                         static_cast<std::size_t>(token)) *
                            static_cast<std::size_t>(topk);
  }
  int owner(std::int32_t id) const { return id < 0 ? -1 : owners[static_cast<std::size_t>(id)]; }
  /// Calls f(rank) for each rank that serves a choice of the token, ascending, each once.
  template <class F>
  void for_each_rank(int source, int token, F&& f) const {
    std::int32_t const* const chosen = of(source, token);
    int last = -1;
    for (;;) {
      int next = ranks;
      for (int k = 0; k < topk; ++k) {
        int const r = owner(chosen[k]);
        if (r > last && r < next) next = r;
      }
      if (next == ranks) return;
      f(next);
      last = next;
    }
  }
};
routes routes_of(bench_case const& c, std::vector<std::int32_t> ids);

/// Where one rank's received rows stand: position of every choice, by (expert, source, token,
/// choice), as ferry lays them out with row_align 1.
struct places {
  std::vector<std::int32_t> position;  ///< [ranks, tokens, topk], -1: not on this rank
  std::int64_t end = 0;                ///< one past the last position used
  std::int64_t most = 0;               ///< rows of the expert that has most
};
/// Units   `per_expert`: 0, or positions of each expert where the layout is padded
places places_of(routes const& r, int rank, std::int64_t per_expert);

/// Rows of the expert that has most, on any rank.
std::int64_t most_rows_of_an_expert(routes const& r);

}  // namespace ferry::bench
