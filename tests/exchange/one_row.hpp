// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// One row's way through an exchange: what a device makes of it on the wire and back.
#pragma once

#include "exchange/device_slot.hpp"
#include "exchange/rank_threads.hpp"

#include <ferry/base/number_formats.hpp>
#include <ferry/ferry.hpp>

#include <cstdint>
#include <vector>

namespace ferry::oracle {

/// A step of one token with one expert on one rank, whose rows go out as they are in `values`.
struct one_row {
  std::vector<std::uint8_t> codes;
  std::vector<std::byte> scales;
  std::vector<float> home;
};
inline one_row step_of(device const& where, exchange_options o, std::vector<float> const& values) {
  auto const n = static_cast<std::int64_t>(values.size());
  o.num_experts = o.topk = o.max_tokens = o.num_microbatches = 1;
  o.hidden = static_cast<int>(n);
  o.expert_rows = o.output = dtype::f32;
  thread_ranks const meeting = threads(1);
  group const alone = join(meeting.rank(0)).value();
  exchange ep = make_exchange(alone, where, o).value();
  queue q = queue::on(where).value();
  device_copies copies(where);
  std::vector<bf16> narrow;
  for (float v : values) narrow.push_back(from_float<bf16>(v));
  const_tensor const tokens =
      o.tokens == dtype::bf16 ? rows_of<bf16>(copies.there(narrow.data(), narrow.size()), 1, n)
                              : rows_of<float>(copies.there(values.data(), values.size()), 1, n);
  std::int32_t const expert = 0;
  float const one = 1;
  microbatch& mb = ep.microbatch(0);
  received const in =
      mb.dispatch(q, {.tokens = tokens,
                      .choices = dense<std::int32_t const>(copies.there(&expert, 1), 1, 1),
                      .weights = dense<float const>(copies.there(&one, 1), 1, 1)})
          .value();
  one_row out;
  out.codes.resize(values.size());
  out.scales.resize(static_cast<std::size_t>(in.scales.data ? in.scales.columns : 0));
  out.home.resize(values.size());
  mb.wait(q).value();
  copies.back(out.codes.data(), in.rows.data, out.codes.size());
  copies.back(out.scales.data(), in.scales.data, out.scales.size());
  float* const output = copies.there(out.home.data(), out.home.size());
  mb.combine(q, rows_of<float>(copies.there(values.data(), values.size()), 1, n),
             rows_of(output, 1, n))
      .value();
  mb.wait(q).value();
  copies.back(out.home.data(), output, out.home.size() * sizeof(float));
  return out;
}

}  // namespace ferry::oracle
