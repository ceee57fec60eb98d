// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "base/fail.hpp"
#include "exchange/hops.hpp"

#include <algorithm>

namespace ferry {
namespace {

// Bytes of a row of `hidden` columns in flight, and of its scales.
std::size_t row_bytes_of(wire w, int hidden) {
  return static_cast<std::size_t>(hidden) * bytes_of(element_of(w));
}
std::size_t scale_bytes_of(wire w, int hidden) {
  if (!is_fp8(w)) return 0;
  auto const blocks = static_cast<std::size_t>(ceil_div(hidden, scale_block));
  return w == wire::fp8_ue8m0 ? blocks : 4 * blocks;
}

// Tokens that share a flag. A CPU waits with a system call where other devices poll, so it likes
// few flags; there, a short step needs many chunks to keep many blocks at work.
int default_chunk_tokens(int max_tokens, bool on_device) {
  if (!on_device || max_tokens > 1024) return 16;
  return max_tokens > 256 ? 8 : 4;
}

}  // namespace

exchange_shape shape_of(exchange_options const& options, int rank, int num_ranks, bool on_device) {
  exchange_shape s;
  s.rank = rank;
  s.ranks = num_ranks;
  s.experts = options.expert_slots ? options.expert_slots : options.num_experts;
  s.topk = options.topk;
  s.hidden = options.hidden;
  s.max_tokens = options.max_tokens;
  s.most_blocks = options.blocks;
  s.round_tokens = options.round_tokens ? options.round_tokens : options.max_tokens;
  s.chunk_tokens = options.chunk_tokens ? options.chunk_tokens
                                        : default_chunk_tokens(options.max_tokens, on_device);
  s.per_choice = options.reduction == reduction::per_choice;
  s.sent = options.wire;
  s.returned = options.combine_wire;
  bool const opaque = options.wire == wire::opaque;
  s.row_bytes = opaque ? options.opaque_row_bytes : row_bytes_of(s.sent, s.hidden);
  s.scale_bytes = opaque ? options.opaque_scale_bytes : scale_bytes_of(s.sent, s.hidden);
  s.home_bytes = row_bytes_of(s.returned, s.hidden);
  s.home_scale_bytes = scale_bytes_of(s.returned, s.hidden);
  return s;
}

void take_flavours(exchange_shape& shape, std::span<std::byte const> fnuz) {
  std::byte const own = fnuz[static_cast<std::size_t>(shape.rank)];
  bool const differ = std::ranges::any_of(fnuz, [own](std::byte f) { return f != own; });
  bool const sent = shape.sent == wire::fp8_e4m3, returned = shape.returned == wire::fp8_e4m3;
  if (sent) shape.sent = e4m3_wire(own != std::byte{0});
  if (returned) shape.returned = e4m3_wire(own != std::byte{0});
  shape.mixed = static_cast<mixed_rows>(differ * (sent + 2 * returned));
}

result<positions> positions_of(exchange_options const& options, exchange_shape const& shape) {
  positions p;
  std::int64_t const experts = shape.local_experts(shape.rank);
  std::int64_t const tokens = std::int64_t{shape.ranks} * shape.max_tokens;
  p.in_place = options.layout == layout::in_place;
  if (options.layout == layout::padded) {
    p.per_expert = options.capacity ? options.capacity : tokens;
    p.capacity = p.per_expert * experts;
  } else {
    p.align = options.layout == layout::grouped ? options.row_align : 1;
    p.capacity =
        options.capacity ? options.capacity : tokens * shape.topk + experts * (p.align - 1);
  }
  if (p.in_place && std::int64_t{shape.ranks} * shape.round_tokens > INT32_MAX)
    return fail(error_code::invalid_argument,
                "layout in_place with {} ranks of {} tokens: an index counts to {}", shape.ranks,
                shape.round_tokens, INT32_MAX);
  if (p.capacity > INT32_MAX)
    return fail(
        error_code::invalid_argument,
        "{} positions for received rows on rank {} ({} ranks, {} tokens, top-{}, {} experts); "
        "at most {}: set options.capacity",
        p.capacity, shape.rank, shape.ranks, shape.max_tokens, shape.topk, experts, INT32_MAX);
  return p;
}

result<window_layout> window_of(exchange_options const& options, exchange_shape const& s,
                                relay_shape const& relay) {
  // Every option is within its limits, but their product may not fit 64 bits: a rough sum tells.
  double const tokens = s.round_tokens;
  double const record = static_cast<double>(s.row_bytes + s.scale_bytes + route_bytes(s.topk));
  double const home = static_cast<double>(s.home_bytes + s.home_scale_bytes);
  double const home_rows = s.per_choice ? s.topk : s.ranks;
  double const relayed = static_cast<double>(relay.sources) *
                         (record + (s.per_choice ? s.topk : relay.members) * home);
  double const bytes =
      options.num_microbatches * tokens * (s.ranks * record + home_rows * home + relayed);
  constexpr double most = 0x1p56;
  if (bytes > most)
    return fail(
        error_code::invalid_argument,
        "a window of {:.0f} bytes ({} ranks, {} tokens a round, rows of {} and {} bytes, {} "
        "slots); at most {:.0f}",
        bytes, s.ranks, s.round_tokens, s.row_bytes, s.home_bytes, options.num_microbatches, most);
  return lay_out_window(s, options.num_microbatches, relay_bytes_of(s, relay));
}

result<std::size_t> window_bytes(exchange_options const& options, int num_ranks, device_kind kind,
                                 int ranks_per_node) {
  FERRY_CHECK(validate(options, num_ranks));
  if (ranks_per_node < 0)
    return fail(error_code::invalid_argument, "ranks_per_node is {}; it must be 0 or more",
                ranks_per_node);
  bool const on_device = kind != device_kind::cpu;
  if (on_device && options.hops == hops::two)
    return fail(error_code::unsupported, "hops is two; only CPU ranks take two hops so far");
  exchange_shape const shape = shape_of(options, 0, num_ranks, on_device);
  node_map const nodes = node_map::of_equal(num_ranks, ranks_per_node);
  bool const two = take_two_hops(options.hops, shape, nodes, on_device);
  FERRY_TRY(window_layout const window,
            window_of(options, shape, two ? nodes.shape() : relay_shape{}));
  return window.bytes();
}

}  // namespace ferry
