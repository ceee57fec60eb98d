// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/balance/apply_placement.hpp>

#include "balance/write_placement.hpp"
#include "base/fail.hpp"

#include <numeric>
#include <vector>

namespace ferry {

result<void> check_fits(exchange const& to, placement const& where) {
  FERRY_CHECK(validate(where));
  return check_sizes(to, where);
}

result<void> check_sizes(exchange const& to, placement const& where) {
  exchange_options const& o = to.options();
  struct {
    char const* what;
    int placed, there;
  } const all[] = {{"layers", where.num_layers, o.layers},
                   {"experts", where.num_experts, o.num_experts},
                   {"slots", where.num_slots, to.first_expert(to.ranks().size())},
                   {"ranks", where.num_ranks, to.ranks().size()}};
  for (auto const& one : all)
    if (one.placed != one.there)
      return fail(error_code::invalid_argument, "a placement of {} {} for an exchange of {}",
                  one.placed, one.what, one.there);
  return {};
}

result<void> apply_placement(exchange& to, placement const& where, replica_choice rule,
                             expert_loads const* loads, std::span<int const> layers) {
  FERRY_CHECK(check_fits(to, where));
  return write_placement(to, where, rule, loads, layers);
}

result<void> write_placement(exchange& to, placement const& where, replica_choice rule,
                             expert_loads const* loads, std::span<int const> layers) {
  if (loads && (loads->num_layers != where.num_layers || loads->num_experts != where.num_experts))
    return fail(error_code::invalid_argument,
                "loads of {} layers and {} experts for a placement of {} and {}", loads->num_layers,
                loads->num_experts, where.num_layers, where.num_experts);
  std::vector<int> all(static_cast<std::size_t>(layers.empty() ? where.num_layers : 0));
  std::iota(all.begin(), all.end(), 0);
  if (layers.empty()) layers = all;
  std::vector<replica_table> made;
  for (int const layer : layers) {
    FERRY_TRY(replica_table table,
              replicas_for(where, layer, to.ranks().rank(), rule,
                           loads ? loads->layer(layer) : std::span<double const>{}));
    made.push_back(std::move(table));
  }
  std::vector<expert_table> tables;
  for (std::size_t i = 0; i < made.size(); ++i)
    tables.push_back({layers[i], made[i].first, made[i].candidates});
  return to.write_tables(tables);
}

}  // namespace ferry
