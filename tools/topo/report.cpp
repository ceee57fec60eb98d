// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "report.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace ferry::topo_tool {
namespace {

using table = std::vector<std::vector<std::string>>;

/// Columns as wide as their longest cell; the last one is not filled up.
std::string text_of(table const& rows) {
  std::vector<std::size_t> widths;
  for (auto const& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths.resize(std::max(widths.size(), row.size()));
      widths[i] = std::max(widths[i], row[i].size());
    }
  std::string text;
  for (auto const& row : rows) {
    for (std::size_t i = 0; i + 1 < row.size(); ++i)
      text += fmt::format("  {:<{}}", row[i], widths[i]);
    text += "  " + row.back() + "\n";
  }
  return text;
}

std::string or_none(std::string const& text) {
  return text.empty() ? "-" : text;
}
std::string numa_text(int node) {
  return node < 0 ? "-" : std::to_string(node);
}

int node_of(topology const& t, std::size_t rank) {
  return t.ranks_per_node ? static_cast<int>(rank) / t.ranks_per_node : 0;
}
int num_nodes(topology const& t) {
  return t.places.empty() ? 0 : node_of(t, t.places.size() - 1) + 1;
}
bool has_rails(topology const& t) {
  return std::any_of(t.rails.begin(), t.rails.end(), [](auto const& r) { return !r.empty(); });
}
char const* carrier_of(topology const& t) {
  return t.kind == rail_kind::rdma ? "verbs" : "libfabric";
}

std::string rails_text(topology const& t, std::size_t rank) {
  std::string text;
  for (rail const& r : t.rails[rank])
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ",
                        t.machine.nics[static_cast<std::size_t>(r.nic)].name(), to_string(r.near));
  return or_none(text);
}

std::string reach_text(topology const& t) {
  if (t.places.empty()) return "reach: no rank\n";
  std::string const network =
      has_rails(t) ? fmt::format("network ({} over the rails)", carrier_of(t)) : "none: no NIC";
  if (num_nodes(t) == 1)
    return fmt::format("reach: mapped among these ranks; to other machines {}\n", network);
  return fmt::format("reach: mapped within a node of {} ranks; between the {} nodes {}\n",
                     t.ranks_per_node, num_nodes(t), network);
}

}  // namespace

std::string table_of(topology const& t) {
  machine_map const& m = t.machine;
  std::string text =
      fmt::format("machine: {}; packages {}, NUMA nodes {}, devices {}, NICs {}\n", t.from,
                  m.num_packages, m.numa_nodes.size(), m.devices.size(), m.nics.size());
  if (!m.devices.empty()) {
    table rows = {{"device", "bus", "NUMA"}};
    for (machine_place const& d : m.devices)
      rows.push_back({d.name, d.bus, numa_text(d.numa_node)});
    text += "\n" + text_of(rows);
  }
  if (!m.nics.empty()) {
    table rows = {{"NIC", "interface", "bus", "NUMA"}};
    for (machine_nic const& n : m.nics)
      rows.push_back({or_none(n.rdma), or_none(n.interface), n.bus, numa_text(n.numa_node)});
    text += "\n" + text_of(rows);
  }
  if (!t.places.empty()) {
    table rows = {{"rank", "node", "at", "rails"}};
    for (std::size_t r = 0; r < t.places.size(); ++r)
      rows.push_back(
          {std::to_string(r), std::to_string(node_of(t, r)), t.places[r]->name, rails_text(t, r)});
    text += "\n" + text_of(rows);
  }
  text += "\n" + reach_text(t);
  if (!t.absent.empty()) {
    text += "not here:";
    for (std::size_t i = 0; i < t.absent.size(); ++i) text += (i ? "; " : " ") + t.absent[i];
    text += "\n";
  }
  return text;
}

std::string json_of(topology const& t) {
  using nlohmann::ordered_json;
  machine_map const& m = t.machine;
  ordered_json all;
  all["from"] = t.from;
  all["packages"] = m.num_packages;
  all["numa_nodes"] = m.numa_nodes.size();
  all["devices"] = ordered_json::array();
  for (machine_place const& d : m.devices)
    all["devices"].push_back({{"name", d.name}, {"bus", d.bus}, {"numa_node", d.numa_node}});
  all["nics"] = ordered_json::array();
  for (machine_nic const& n : m.nics)
    all["nics"].push_back(
        {{"rdma", n.rdma}, {"interface", n.interface}, {"bus", n.bus}, {"numa_node", n.numa_node}});
  all["ranks"] = ordered_json::array();
  for (std::size_t r = 0; r < t.places.size(); ++r) {
    ordered_json rank = {{"rank", r}, {"node", node_of(t, r)}, {"at", t.places[r]->name}};
    rank["rails"] = ordered_json::array();
    for (rail const& x : t.rails[r])
      rank["rails"].push_back(
          {{"nic", m.nics[static_cast<std::size_t>(x.nic)].name()}, {"near", to_string(x.near)}});
    all["ranks"].push_back(rank);
  }
  all["reach"] = {{"within_a_node", "mapped"},
                  {"between_nodes", has_rails(t) ? "network" : "none"},
                  {"carrier", has_rails(t) ? carrier_of(t) : ""}};
  all["not_here"] = t.absent;
  // Names of files need not be UTF-8.
  return all.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace ferry::topo_tool
