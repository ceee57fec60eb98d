// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "exchange/hops.hpp"

#include "base/fail.hpp"

#include <cmath>

namespace ferry {
namespace {

// What is reached, not what is printed on the box: a 400 Gb/s NIC for each rank, links between the
// ranks of a node, and what a stage more costs beside its bytes (its launch, its waits, its words),
// each way.
constexpr double network_bytes_per_s = 45e9;
constexpr double link_bytes_per_s = 200e9;
constexpr double stage_s = 50e-6;

// How many of `places` equal places at least one of `draws` even draws of all ranks falls into,
// where each place has a share of the ranks.
double expected(double places, double share, int draws) {
  return places * (1 - std::pow(1 - share, draws));
}

}  // namespace

bool two_hops_pay(exchange_shape const& shape, node_map const& nodes) {
  int const most = nodes.most_members();
  if (nodes.size() < 2 || most < 2) return false;
  auto const ranks = static_cast<double>(shape.ranks);
  double const per_node = ranks / nodes.size();
  double const far_ranks = expected(ranks - per_node, 1 / ranks, shape.topk);
  double const far_nodes = expected(nodes.size() - 1, per_node / ranks, shape.topk);
  auto const record =
      static_cast<double>(shape.row_bytes + shape.scale_bytes + route_bytes(shape.topk));
  auto const home = static_cast<double>(shape.home_bytes + shape.home_scale_bytes);
  // With per_choice as many rows come home as ever, and each crosses the node's links as well.
  double const rows_home = shape.per_choice ? shape.topk * (ranks - per_node) / ranks : far_ranks;
  double const saved = (far_ranks - far_nodes) * (record + (shape.per_choice ? 0 : home));
  double const added = far_ranks * record + rows_home * home;
  double const tokens = shape.max_tokens;
  return tokens * saved / network_bytes_per_s > tokens * added / link_bytes_per_s + 2 * stage_s;
}

bool take_two_hops(hops wanted, exchange_shape const& shape, node_map const& nodes,
                   bool on_device) {
  if (wanted == hops::one || on_device || shape.max_rounds() > 1 || nodes.size() < 2) return false;
  return wanted == hops::two || two_hops_pay(shape, nodes);
}

result<void> choose_hops(exchange_core& core) {
  exchange_options& o = core.options;
  bool const on_device = core.where.kind() != device_kind::cpu;
  hops const wanted = o.hops;
  if (wanted == hops::two && on_device)
    return fail(error_code::unsupported, "hops is two on {}; only CPU ranks take two hops so far",
                core.where.name());
  o.hops = hops::one;
  if (wanted == hops::one || on_device) return {};
  FERRY_TRY(node_map const nodes, find_nodes(core.ranks));
  // A relay passes on the bytes that it got.
  if (core.shape.mixed != mixed_rows::none) {
    if (wanted != hops::two || nodes.size() < 2) return {};
    return fail(error_code::unsupported,
                "hops is two, and ranks take fp8 rows of both flavours, but a relay cannot change "
                "codes");
  }
  if (!take_two_hops(wanted, core.shape, nodes, on_device)) return {};
  o.hops = hops::two;
  core.paths = std::make_unique<node_paths>(nodes, core.shape.rank);
  auto window = window_of(o, core.shape, core.paths->shape);
  if (window) core.window = *window;
  return core.ranks.agree(window ? result<void>{} : result<void>{window.error()});
}

}  // namespace ferry
