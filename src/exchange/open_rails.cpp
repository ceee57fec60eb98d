// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "exchange/open_rails.hpp"

#include "base/fail.hpp"

#include <ferry/transport/rails.hpp>
#include <ferry/transport/striped.hpp>

#include <algorithm>
#include <string>

namespace ferry {
namespace {

/// Of the NICs that work, those that this rank uses: its nearest, or the next in order where nobody
/// knows what is near.
std::vector<std::string> choose_nics(group const& ranks, std::vector<std::string> const& working,
                                     rail_kind kind, int rails) {
  std::vector<std::string> chosen;
  auto const mine = static_cast<std::size_t>(ranks.index_on_this_machine());
  result<machine_map> machine =
      working.size() > 1 ? read_machine() : result<machine_map>(machine_map{});
  if (machine) {
    for (machine_nic& n : machine->nics) {
      std::string& name = kind == rail_kind::rdma ? n.rdma : n.interface;
      if (std::find(working.begin(), working.end(), name) == working.end()) name.clear();
    }
    // CPU ranks only: they are at NUMA nodes, not at devices.
    machine->devices.clear();
    auto const places = places_of_ranks(*machine, ranks.ranks_on_this_machine());
    auto const all = choose_rails(*machine, places, kind, rails);
    if (mine < all.size())
      for (rail const& r : all[mine]) {
        machine_nic const& n = machine->nics[static_cast<std::size_t>(r.nic)];
        chosen.push_back(kind == rail_kind::rdma ? n.rdma : n.interface);
      }
  }
  auto const wanted = std::min(static_cast<std::size_t>(rails), working.size());
  if (chosen.empty())
    for (std::size_t i = 0; i < wanted; ++i)
      chosen.push_back(working[(mine * wanted + i) % working.size()]);
  return chosen;
}

result<std::vector<std::string>> verbs_nics(group const& ranks, exchange_options const& o) {
  if (!o.network.device.empty())
    return std::vector(static_cast<std::size_t>(o.rails), o.network.device);
  FERRY_TRY(auto const working, working_verbs_devices(o.network));
  if (working.empty()) return fail(error_code::unsupported, "no RDMA device has an active port");
  return choose_nics(ranks, working, rail_kind::rdma, o.rails);
}

// The provider knows best which of its domains is the first; near ones are asked for with `rails`.
result<std::vector<std::string>> fabric_nics(group const& ranks, exchange_options const& o) {
  if (o.rails == 1 || !o.fabric.domain.empty() || !o.fabric.address.empty())
    return std::vector(static_cast<std::size_t>(o.rails), o.fabric.domain);
  FERRY_TRY(auto domains, libfabric_domains(o.fabric));
  // The loopback interface leads to no other machine.
  if (domains.size() > 1) std::erase(domains, "lo");
  return choose_nics(ranks, domains, rail_kind::interface, o.rails);
}

}  // namespace

result<std::unique_ptr<transport>> open_rails(group const& ranks, exchange_options const& options,
                                              std::vector<int> const& peers) {
  bool const rdma = options.carrier == carrier::verbs;
  FERRY_TRY(auto const nics, rdma ? verbs_nics(ranks, options) : fabric_nics(ranks, options));
  std::vector<std::unique_ptr<transport>> rails;
  for (std::string const& nic : nics) {
    verbs_options network = options.network;
    network.device = nic;
    libfabric_options fabric = options.fabric;
    fabric.domain = nic;
    FERRY_TRY(rails.emplace_back(),
              rdma
                  ? make_verbs_transport(ranks.rank(), ranks.size(), std::move(network), peers)
                  : make_libfabric_transport(ranks.rank(), ranks.size(), std::move(fabric), peers));
  }
  if (rails.size() == 1 && options.rails == 1) return std::move(rails.front());
  return make_striped_transport(ranks.size(), std::move(rails));
}

}  // namespace ferry
