// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/options.hpp>

#include "base/fail.hpp"

#include <bit>
#include <utility>

namespace ferry {
namespace {

result<void> in_range(char const* name, std::int64_t value, std::int64_t low, std::int64_t high) {
  if (value < low || value > high)
    return fail(error_code::invalid_argument, "{} is {}; it must be {} to {}", name, value, low,
                high);
  return {};
}

result<void> float_type(char const* name, dtype type) {
  if (type == dtype::f32 || type == dtype::bf16 || type == dtype::fp16) return {};
  return fail(error_code::invalid_argument, "{} is {}; it must be f32, bf16 or fp16", name,
              to_string(type));
}

// Options may come from a file or another language: a number need not be one of the enumerators.
result<void> known(exchange_options const& o) {
  FERRY_CHECK(in_range("wire", static_cast<int>(o.wire), 0, static_cast<int>(wire::opaque)));
  FERRY_CHECK(in_range("combine_wire", static_cast<int>(o.combine_wire), 0,
                       static_cast<int>(wire::opaque)));
  FERRY_CHECK(in_range("ids", static_cast<int>(o.ids), 0, static_cast<int>(id_type::int64)));
  FERRY_CHECK(
      in_range("layout", static_cast<int>(o.layout), 0, static_cast<int>(layout::in_place)));
  FERRY_CHECK(in_range("fp8", static_cast<int>(o.fp8), 0, static_cast<int>(fp8_flavour::either)));
  FERRY_CHECK(in_range("via", static_cast<int>(o.via), 0, static_cast<int>(reach::network)));
  FERRY_CHECK(in_range("hops", static_cast<int>(o.hops), 0, static_cast<int>(hops::two)));
  return in_range("reduction", static_cast<int>(o.reduction), 0,
                  static_cast<int>(reduction::per_choice));
}

result<void> check_opaque(exchange_options const& o) {
  bool const opaque = o.wire == wire::opaque;
  constexpr std::int64_t most = std::int64_t{1} << 30;
  FERRY_CHECK(in_range("opaque_row_bytes", static_cast<std::int64_t>(o.opaque_row_bytes),
                       opaque ? 1 : 0, opaque ? most : 0));
  return in_range("opaque_scale_bytes", static_cast<std::int64_t>(o.opaque_scale_bytes), 0,
                  opaque ? most : 0);
}

result<void> check_rounds(exchange_options const& o) {
  FERRY_CHECK(in_range("round_tokens", o.round_tokens, 0, o.max_tokens));
  bool const rounds = o.round_tokens != 0 && o.round_tokens < o.max_tokens;
  if (rounds && o.layout == layout::in_place)
    return fail(
        error_code::invalid_argument,
        "layout in_place with round_tokens {} below max_tokens {}: rounds reuse the inbox, so "
        "rows cannot stay in it",
        o.round_tokens, o.max_tokens);
  if (rounds && o.hops == hops::two)
    return fail(error_code::invalid_argument,
                "hops is two with round_tokens {} below max_tokens {}: a relay takes steps of one "
                "round",
                o.round_tokens, o.max_tokens);
  if (o.chunk_tokens != 0 && !std::has_single_bit(static_cast<unsigned>(o.chunk_tokens)))
    return fail(error_code::invalid_argument, "chunk_tokens is {}; it must be 1, 2, 4, 8 or 16",
                o.chunk_tokens);
  return in_range("chunk_tokens", o.chunk_tokens, 0, 16);
}

result<void> check_placement(exchange_options const& o) {
  FERRY_CHECK(in_range("layers", o.layers, 0, 1 << 16));
  FERRY_CHECK(in_range("sampled_tokens", o.sampled_tokens, 0, o.layers ? 64 : 0));
  if (o.expert_slots == 0) return {};
  FERRY_CHECK(in_range("expert_slots", o.expert_slots, o.num_experts, 1 << 20));
  if (o.expert_slots == o.num_experts || o.layers > 0) return {};
  return fail(error_code::invalid_argument,
              "expert_slots is {} for {} experts, but layers is 0: only tables say which experts "
              "the others hold",
              o.expert_slots, o.num_experts);
}

result<void> check_faults(loopback_faults const& f) {
  for (auto const& [name, chance] : {std::pair{"faults.reorder", f.reorder},
                                     {"faults.delay", f.delay},
                                     {"faults.try_again", f.try_again},
                                     {"faults.drop", f.drop},
                                     {"faults.fail", f.fail}})
    FERRY_CHECK(in_range(name, chance, 0, 1024));
  FERRY_CHECK(
      in_range("faults.longest_delay in microseconds", f.longest_delay.count(), 0, 60'000'000));
  if (f.queue_depth == 0)
    return fail(error_code::invalid_argument, "faults.queue_depth is 0; it must be 1 or more");
  return {};
}

}  // namespace

result<void> validate(exchange_options const& o, int num_ranks) {
  FERRY_CHECK(in_range("the number of ranks", num_ranks, 1, 65536));
  FERRY_CHECK(known(o));
  FERRY_CHECK(in_range("num_experts", o.num_experts, 1, 1 << 20));
  FERRY_CHECK(check_placement(o));
  FERRY_CHECK(in_range("topk", o.topk, 1, 32));
  FERRY_CHECK(in_range("hidden", o.hidden, 1, 1 << 24));
  FERRY_CHECK(in_range("max_tokens", o.max_tokens, 1, (1 << 24) - 1));
  FERRY_CHECK(float_type("tokens", o.tokens));
  FERRY_CHECK(float_type("expert_rows", o.expert_rows));
  FERRY_CHECK(float_type("output", o.output));
  if (o.combine_wire == wire::fp8_ue8m0 || o.combine_wire == wire::opaque)
    return fail(error_code::invalid_argument,
                "combine_wire is {}; it must be f32, bf16, fp16, fp8_e4m3 or fp8_e4m3fnuz",
                to_string(o.combine_wire));
  FERRY_CHECK(check_opaque(o));
  FERRY_CHECK(in_range("row_align", o.row_align, 1, 1 << 16));
  FERRY_CHECK(in_range("capacity", o.capacity, 0, INT32_MAX));
  FERRY_CHECK(in_range("blocks", o.blocks, 1, 256));
  FERRY_CHECK(in_range("block_teams", o.block_teams, 0, 32));
  FERRY_CHECK(in_range("num_microbatches", o.num_microbatches, 1, 64));
  FERRY_CHECK(in_range("timeout in milliseconds", o.timeout.count(), 0, 86'400'000));
  if (o.via == reach::self)
    return fail(error_code::invalid_argument, "via is self; it must be mapped or network");
  FERRY_CHECK(check_faults(o.faults));
  FERRY_CHECK(
      in_range("carrier", static_cast<int>(o.carrier), 0, static_cast<int>(carrier::libfabric)));
  FERRY_CHECK(validate(o.network));
  FERRY_CHECK(validate(o.fabric));
  FERRY_CHECK(in_range("rails", o.rails, 1, 16));
  return check_rounds(o);
}

}  // namespace ferry
