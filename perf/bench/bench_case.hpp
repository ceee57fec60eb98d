// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// One case of a sweep: what is measured, on which sizes.
#pragma once

#include <ferry/options.hpp>

#include <string>
#include <utility>
#include <vector>

namespace ferry::bench {

enum class operation { dispatch, combine, step };
enum class routing_kind { uniform, power_law, group_limited, all_to_one, file };
/// What the experts hand to combine: a row for each choice, or one for each token, summed already.
enum class result_rows { experts, summed };

/// A word of the command line and its meaning.
template <class T>
using words = std::vector<std::pair<std::string, T>>;

inline words<operation> const operation_words = {
    {"dispatch", operation::dispatch}, {"combine", operation::combine}, {"step", operation::step}};
inline words<routing_kind> const routing_words = {{"uniform", routing_kind::uniform},
                                                  {"power_law", routing_kind::power_law},
                                                  {"group_limited", routing_kind::group_limited},
                                                  {"all_to_one", routing_kind::all_to_one}};
inline words<wire> const wire_words = {{"f32", wire::f32},
                                       {"bf16", wire::bf16},
                                       {"fp16", wire::fp16},
                                       {"fp8_e4m3", wire::fp8_e4m3},
                                       {"fp8_e4m3fnuz", wire::fp8_e4m3fnuz},
                                       {"fp8_ue8m0", wire::fp8_ue8m0},
                                       {"opaque", wire::opaque}};
inline words<layout> const layout_words = {
    {"grouped", layout::grouped}, {"padded", layout::padded}, {"in_place", layout::in_place}};
inline words<reduction> const reduction_words = {{"per_rank", reduction::per_rank},
                                                 {"per_choice", reduction::per_choice}};
inline words<result_rows> const result_words = {{"experts", result_rows::experts},
                                                {"summed", result_rows::summed}};

template <class T>
std::string word_of(words<T> const& all, T value) {
  for (auto const& [word, meaning] : all)
    if (meaning == value) return word;
  return "file";
}

struct bench_case {
  operation op = operation::step;
  int ranks = 1;
  int tokens = 1;  ///< of each rank
  int hidden = 1;
  int topk = 1;
  int experts = 1;
  wire sent = wire::bf16;
  ferry::layout layout = layout::grouped;
  ferry::reduction reduction = reduction::per_rank;
  int slots = 1;   ///< steps that are open at the same time
  int queues = 1;  ///< threads of a rank; queue q drives slots q, q + queues, ...
  routing_kind routing = routing_kind::uniform;
  int layer = 0;  ///< of the file with choices
  result_rows results = result_rows::experts;
};

/// The type of the caller's rows: the wire's own where that is one of numbers, else bf16. Opaque
/// rows are fp8 codes with a scale for each 128 columns, made beforehand.
inline dtype token_type(bench_case const& c) {
  return c.sent == wire::f32 ? dtype::f32 : c.sent == wire::fp16 ? dtype::fp16 : dtype::bf16;
}
/// Rows come home in the type of the caller's rows.
inline wire wire_home(bench_case const& c) {
  return c.sent == wire::f32 ? wire::f32 : c.sent == wire::fp16 ? wire::fp16 : wire::bf16;
}

/// Bytes of one row of a case.
struct row_sizes {
  std::size_t given = 0;   ///< as the caller has it
  std::size_t sent = 0;    ///< in flight to the experts
  std::size_t scales = 0;  ///< that travel with it
  std::size_t home = 0;    ///< in flight home, and of the experts' and output rows
};
inline row_sizes sizes_of(bench_case const& c) {
  auto const hidden = static_cast<std::size_t>(c.hidden);
  auto const blocks = static_cast<std::size_t>(ceil_div(c.hidden, scale_block));
  bool const opaque = c.sent == wire::opaque;
  bool const bytes_for_scales = c.sent == wire::fp8_ue8m0;
  row_sizes s;
  s.given = opaque ? hidden : hidden * bytes_of(token_type(c));
  s.sent = hidden * bytes_of(element_of(c.sent));
  s.scales = opaque || is_fp8(c.sent) ? blocks * (bytes_for_scales ? 1 : 4) : 0;
  s.home = hidden * bytes_of(token_type(c));
  return s;
}

}  // namespace ferry::bench
