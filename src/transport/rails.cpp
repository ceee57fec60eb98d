// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/transport/rails.hpp>

#include <algorithm>
#include <tuple>

namespace ferry {
namespace {

class chooser {
 public:
  chooser(machine_map const& machine, rail_kind kind) : uses_(machine.nics.size()) {
    for (std::size_t i = 0; i < machine.nics.size(); ++i) {
      machine_nic const& n = machine.nics[i];
      if (!(kind == rail_kind::rdma ? n.rdma : n.interface).empty()) usable_.push_back(i);
    }
  }

  void add_rail(machine_place const& place, std::vector<rail>& of_rank) {
    if (usable_.empty()) return;
    nearness best = nearness::other_package;
    for (std::size_t const i : usable_) best = std::min(best, place.to_nic[i].near);
    // Among equals the one after the last that the rank took, so that neighbours take turns.
    std::size_t const after =
        of_rank.empty() ? 0 : static_cast<std::size_t>(of_rank.back().nic) + 1;
    auto const worth = [&](std::size_t i) {
      nic_way const& way = place.to_nic[i];
      return std::tuple(way.near, way.bridges, uses_[i], (i + uses_.size() - after) % uses_.size());
    };
    std::size_t const none = uses_.size();
    std::size_t chosen = none;
    for (std::size_t const i : usable_) {
      if (place.to_nic[i].near > std::max(best, nearness::same_numa)) continue;
      if (std::any_of(of_rank.begin(), of_rank.end(),
                      [&](rail const& r) { return static_cast<std::size_t>(r.nic) == i; }))
        continue;
      if (chosen == none || worth(i) < worth(chosen)) chosen = i;
    }
    if (chosen == none) return;
    ++uses_[chosen];
    of_rank.push_back({static_cast<int>(chosen), place.to_nic[chosen].near});
  }

 private:
  std::vector<std::size_t> usable_;
  std::vector<int> uses_;  ///< ranks by NIC
};

}  // namespace

char const* to_string(nearness near) {
  switch (near) {
    case nearness::same_switch: return "same switch";
    case nearness::same_numa: return "same NUMA node";
    case nearness::same_package: return "same package";
    case nearness::other_package: return "other package";
  }
  return "unknown";
}

std::vector<std::vector<rail>> choose_rails(machine_map const& machine,
                                            std::span<machine_place const* const> places,
                                            rail_kind kind, int rails) {
  std::vector<std::vector<rail>> chosen(places.size());
  chooser choose(machine, kind);
  // Every rank's first rail before anybody's second.
  for (int n = 0; n < rails; ++n)
    for (std::size_t r = 0; r < places.size(); ++r) choose.add_rail(*places[r], chosen[r]);
  return chosen;
}

std::vector<machine_place const*> places_of_ranks(machine_map const& machine, int ranks) {
  std::vector<machine_place const*> places;
  auto const count = static_cast<std::size_t>(ranks);
  auto const& nodes = machine.numa_nodes;
  for (std::size_t r = 0; r < count; ++r) {
    if (!machine.devices.empty())
      places.push_back(&machine.devices[r % machine.devices.size()]);
    else if (!nodes.empty())
      places.push_back(&nodes[r * nodes.size() / count]);
  }
  return places;
}

}  // namespace ferry
