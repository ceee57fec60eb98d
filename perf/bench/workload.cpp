// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "workload.hpp"

#include <fmt/format.h>
#include <ferry/base/number_formats.hpp>
#include <ferry/exec/cpu/streaming.hpp>
#include <ferry/kernels/columns.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace ferry::bench {
namespace {

// Numbers of rows repeat after so many columns; a row starts anywhere in that pattern.
constexpr int period = 7;

/// What an expert made of a token, in a column: a whole number from -3 to 3.
int expert_number(int source, int token, int choice, int column) {
  return (source * 5 + token * 3 + choice + column) % period - period / 2;
}

/// Quarters, different for neighbouring choices.
float weight_of(std::size_t index) {
  return 0.25f * static_cast<float>(1 + index % 5);
}

std::size_t bytes_beyond_caches() {
  return 2 * last_cache_bytes();
}

/// A row whose element i is f(i % period).
template <class F>
void write_row(std::byte* to, dtype type, int hidden, F const& f) {
  visit_float_type(type, [&]<class T>(T) {
    T first[period];
    for (int i = 0; i < period; ++i) first[i] = from_float<T>(f(i));
    T* const row = reinterpret_cast<T*>(to);
    for (int i = 0; i < hidden; ++i) row[i] = first[i % period];
  });
}

float read(std::byte const* row, dtype type, int column) {
  float value = 0;
  visit_float_type(type,
                   [&]<class T>(T) { value = to_float(reinterpret_cast<T const*>(row)[column]); });
  return value;
}

}  // namespace

result<workload> workload::make(bench_case const& c, routes r, int rank) {
  workload made;
  made.case_ = c;
  made.rank_ = rank;
  made.size_ = sizes_of(c);
  made.routes_ = std::move(r);
  if (c.layout == layout::padded)
    made.per_expert_ = std::max<std::int64_t>(1, most_rows_of_an_expert(made.routes_));
  made.places_ = places_of(made.routes_, rank, made.per_expert_);
  for (std::size_t i = 0; i < made.routes_.ids.size(); ++i) made.weights_.push_back(weight_of(i));
  bool const summed = c.results == result_rows::summed;
  made.result_rows_ = summed ? std::int64_t{c.ranks} * c.tokens : made.places_.end;

  auto const tokens = static_cast<std::size_t>(c.tokens);
  bool const converts = element_of(c.sent) != token_type(c) && c.sent != wire::opaque;
  std::size_t const fields[5] = {tokens * made.size_.given, converts ? tokens * made.size_.sent : 0,
                                 tokens * made.size_.scales,
                                 static_cast<std::size_t>(made.result_rows_) * made.size_.home,
                                 tokens * made.size_.home};
  for (std::size_t i = 0; i < 5; ++i) {
    made.offsets_[i] = made.set_bytes_;
    made.set_bytes_ += round_up(fields[i], std::size_t{4096});
  }
  if (!converts) made.offsets_[1] = made.offsets_[0];
  std::size_t const each = std::max<std::size_t>(made.set_bytes_, 1);
  made.sets_ = std::max(c.slots, static_cast<int>(std::min<std::size_t>(
                                     ceil_div(bytes_beyond_caches(), each), 1024)));
  FERRY_TRY(made.memory_, window::plain(each * static_cast<std::size_t>(made.sets_)));
  for (int i = 0; i < made.sets_; ++i) made.fill(made.rows_of_set(i));
  return made;
}

void workload::fill(caller_rows const& to) const {
  auto const tokens = static_cast<std::size_t>(case_.tokens);
  if (case_.sent == wire::opaque)
    std::memset(to.tokens, 0x38, tokens * size_.given);
  else
    for (std::size_t t = 0; t < tokens; ++t)
      write_row(to.tokens + t * size_.given, token_type(case_), case_.hidden, [&](int i) {
        return static_cast<float>((i + static_cast<int>(t)) % period - period / 2);
      });
  // For programs that quantise nothing, any code is as good as another.
  if (to.wire != to.tokens) std::memset(to.wire, 0x38, tokens * size_.sent);
  std::memset(to.scales, 0x3F, tokens * size_.scales);
  fill_results(to.results);
  std::memset(to.output, 0xFF, tokens * size_.home);
}

void workload::fill_results(std::byte* to) const {
  dtype const type = token_type(case_);
  for (int s = 0; s < case_.ranks; ++s)
    for (int t = 0; t < case_.tokens; ++t) {
      float sums[period] = {};
      for (int k = 0; k < case_.topk; ++k) {
        std::int32_t const at = position(s, t, k);
        if (at < 0) continue;
        float const weight = weights_[static_cast<std::size_t>(
            (std::int64_t{s} * case_.tokens + t) * case_.topk + k)];
        auto const number = [&](int i) { return static_cast<float>(expert_number(s, t, k, i)); };
        for (int i = 0; i < period; ++i) sums[i] += weight * number(i);
        if (case_.results == result_rows::experts)
          write_row(to + static_cast<std::size_t>(at) * size_.home, type, case_.hidden, number);
      }
      if (case_.results == result_rows::summed)
        write_row(to + static_cast<std::size_t>(std::int64_t{s} * case_.tokens + t) * size_.home,
                  type, case_.hidden, [&](int i) { return sums[i]; });
    }
}

caller_rows workload::rows_of_set(std::int64_t index) const {
  std::byte* const base = memory_.data() + static_cast<std::size_t>(index) * set_bytes_;
  return {base + offsets_[0], base + offsets_[1], base + offsets_[2], base + offsets_[3],
          base + offsets_[4]};
}

caller_rows workload::set(int iteration, int slot) const {
  return rows_of_set((std::int64_t{iteration} * case_.slots + slot) % sets_);
}

dispatch_input workload::input(int iteration, int slot) const {
  caller_rows const rows = set(iteration, slot);
  bool const opaque = case_.sent == wire::opaque;
  std::int64_t const tokens = case_.tokens;
  dispatch_input in;
  in.tokens = {rows.tokens, tokens, opaque ? static_cast<std::int64_t>(size_.given) : case_.hidden,
               opaque ? dtype::byte : token_type(case_), static_cast<std::int64_t>(size_.given)};
  in.choices = dense(routes_.of(rank_, 0), tokens, case_.topk);
  in.weights =
      dense(weights_.data() + std::int64_t{rank_} * tokens * case_.topk, tokens, case_.topk);
  if (opaque)
    in.scales = dense(const_cast<std::byte const*>(rows.scales), tokens,
                      static_cast<std::int64_t>(size_.scales));
  return in;
}

const_tensor workload::results(int iteration, int slot) const {
  return {set(iteration, slot).results, result_rows_, case_.hidden, token_type(case_),
          static_cast<std::int64_t>(size_.home)};
}

tensor workload::output(int iteration, int slot) const {
  return {set(iteration, slot).output, case_.tokens, case_.hidden, token_type(case_),
          static_cast<std::int64_t>(size_.home)};
}

payload workload::sent() const {
  payload sum;
  for (int s = 0; s < case_.ranks; ++s)
    for (int t = 0; t < case_.tokens; ++t)
      routes_.for_each_rank(
          s, t, [&](int d) { (d == s ? sum.self : sum.others) += size_.sent + size_.scales; });
  return sum;
}

payload workload::returned() const {
  payload sum;
  bool const rows = case_.reduction == reduction::per_rank;
  for (int s = 0; s < case_.ranks; ++s)
    for (int t = 0; t < case_.tokens; ++t) {
      if (rows)
        routes_.for_each_rank(s, t, [&](int d) { (d == s ? sum.self : sum.others) += size_.home; });
      for (int k = 0; k < case_.topk && !rows; ++k)
        if (int const d = routes_.owner(routes_.of(s, t)[k]); d >= 0)
          (d == s ? sum.self : sum.others) += size_.home;
    }
  return sum;
}

result<void> workload::check_output(std::byte const* output, char const* who) const {
  dtype const type = token_type(case_);
  for (int t = 0; t < case_.tokens; ++t)
    for (int column = t % 61; column < case_.hidden; column += 61) {
      double sum = 0, magnitude = 0;
      for (int k = 0; k < case_.topk; ++k) {
        auto const at =
            static_cast<std::size_t>((std::int64_t{rank_} * case_.tokens + t) * case_.topk + k);
        if (routes_.ids[at] < 0) continue;
        double const part = double{weights_[at]} * expert_number(rank_, t, k, column);
        sum += part;
        magnitude += std::fabs(part);
      }
      float const seen = read(output + static_cast<std::size_t>(t) * size_.home, type, column);
      // Each of a few roundings loses at most half of the last of bf16's eight bits.
      if (!(std::fabs(seen - sum) <= magnitude / 64))
        return error{error_code::internal,
                     fmt::format("{}: token {} column {} on rank {} is {}, not {}", who, t, column,
                                 rank_, seen, sum)};
    }
  return {};
}

}  // namespace ferry::bench
