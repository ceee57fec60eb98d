// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Choosing the next token.
#pragma once

#include <ferry/base/matrix.hpp>
#include <ferry/deepseek/kernels/find.hpp>
#include <ferry/deepseek/kernels/random.hpp>

#include <cstdint>

namespace ferry::deepseek {

/// What became of a choice.
struct chosen_token {
  enum class state : std::int32_t { chosen, not_a_number, without_bounds };
  std::int32_t id;  ///< the chosen one; the first whose logit is NaN; the largest, if infinite
  state what;
};

/// For each row of logits, at temperature 0 the largest, the lowest id among equals; else a draw
/// from softmax(logits / temperature).
/// Shapes   logits [rows, vocabulary]; slots [rows] or null (row r has slot r); states [slots], or
///          null at temperature 0; chosen [rows]
/// Order    a draw walks through pieces of 1,024 ids and single ids in rising order;
///          what it draws depends on its slot's state alone, which moves on by one
struct next_token {
  matrix<float const> logits;
  std::int32_t const* slots = nullptr;  ///< below 0: nothing is chosen for this row
  std::uint64_t* states = nullptr;
  float temperature = 0;
  chosen_token* chosen = nullptr;

  template <strip Strip>
  FERRY_FN void operator()(Strip const& s) const {
    for (std::int64_t row = s.index(); row < logits.rows; row += s.count()) {
      std::int64_t const slot = slots != nullptr ? slots[row] : row;
      if (slot < 0) continue;
      chosen_token const one = choose(s, logits[row], slot);
      if (s.leader()) chosen[row] = one;
    }
  }

 private:
  static constexpr std::int64_t piece = 1024;

  template <strip Strip>
  FERRY_FN chosen_token choose(Strip const& s, float const* logit, std::int64_t slot) const {
    std::int64_t const n = logits.columns;
    std::int32_t nan = INT32_MAX;
    s.for_each(n, [&](std::int64_t i) {
      std::int32_t const here = is_nan(logit[i]) ? static_cast<std::int32_t>(i) : INT32_MAX;
      nan = here < nan ? here : nan;
    });
    nan = s.merge(nan, [](std::int32_t a, std::int32_t b) { return b < a ? b : a; });
    if (nan < n) return {nan, chosen_token::state::not_a_number};
    float const largest = largest_of(s, logit, n);
    auto const top = static_cast<std::int32_t>(find_first(s, logit, n, largest));
    if (largest - largest != 0) return {top, chosen_token::state::without_bounds};
    if (temperature == 0) return {top, chosen_token::state::chosen};
    std::uint64_t const state = next_state(states[slot]);
    s.sync();
    if (s.leader()) states[slot] = state;
    return {drawn(s, logit, largest, draw_of(state), top), chosen_token::state::chosen};
  }

  /// The weights of a strip; none behind the end.
  template <strip Strip>
  FERRY_FN typename Strip::values weights(Strip const& s, float const* logit, std::int64_t at,
                                          float largest) const {
    std::int64_t const left = logits.columns - at;
    float const t = temperature;
    return s.map([largest, t](float x) { return exponential((x - largest) / t); },
                 left < strip_lanes ? s.load_first(logit + at, left, lowest) : s.load(logit + at));
  }

  template <strip Strip>
  FERRY_FN float piece_weight(Strip const& s, float const* logit, std::int64_t first,
                              float largest) const {
    std::int64_t const end = first + piece < logits.columns ? first + piece : logits.columns;
    auto total = s.fill(0);
    for (std::int64_t i = first; i < end; i += strip_lanes) {
      total = total + weights(s, logit, i, largest);
    }
    return s.sum(total);
  }

  template <strip Strip>
  FERRY_FN std::int32_t drawn(Strip const& s, float const* logit, float largest, double draw,
                              std::int32_t top) const {
    std::int64_t const n = logits.columns;
    double total = 0;
    for (std::int64_t i = 0; i < n; i += piece) {
      total += static_cast<double>(piece_weight(s, logit, i, largest));
    }
    double rest = draw * total;
    for (std::int64_t i = 0; i < n; i += piece) {
      auto const weight = static_cast<double>(piece_weight(s, logit, i, largest));
      if (rest < weight) return drawn_within(s, logit, largest, rest, i);
      rest -= weight;
    }
    return top;  // rounding used up the sum before the draw did
  }

  template <strip Strip>
  FERRY_FN std::int32_t drawn_within(Strip const& s, float const* logit, float largest, double rest,
                                     std::int64_t first) const {
    std::int64_t const end = first + piece < logits.columns ? first + piece : logits.columns;
    std::int64_t last = first;  // with a weight: where rounding leaves something of the draw
    for (std::int64_t i = first; i < end; i += strip_lanes) {
      auto const w = weights(s, logit, i, largest);
      for (int lane = 0; lane < strip_lanes; ++lane) {
        auto const weight = static_cast<double>(s.at_lane(w, lane));
        if (weight == 0) continue;
        last = i + lane;
        if (rest < weight) return static_cast<std::int32_t>(last);
        rest -= weight;
      }
    }
    return static_cast<std::int32_t>(last);
  }
};

}  // namespace ferry::deepseek
