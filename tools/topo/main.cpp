// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// ferry-topo: which devices and NICs does a machine have, and which rails do its ranks use?

#include "report.hpp"

#include <ferry/transport/verbs.hpp>
#include <ferry/version.hpp>

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>

namespace ferry::topo_tool {
namespace {

struct options {
  std::string xml_file;
  bool json = false;
  int ranks = 0;  ///< 0: one for each device, or else for each NUMA node
  int rails = 2;
  int ranks_per_node = 0;
};

bool has_rdma(machine_map const& m) {
  return std::any_of(m.nics.begin(), m.nics.end(),
                     [](machine_nic const& n) { return !n.rdma.empty(); });
}

/// The RDMA devices of this machine itself, of which a description does not tell whether they work.
std::vector<std::string> look_for_verbs(topology& t) {
  auto working = working_verbs_devices({});
  if (!working)
    t.absent.push_back("RDMA verbs (" + working.error().message + ")");
  else if (working->empty())
    t.absent.push_back("RDMA devices with an active port");
  return working ? *std::move(working) : std::vector<std::string>();
}

/// What is known without hwloc: nothing is nearer than anything else.
machine_map in_order(std::vector<std::string> const& nics) {
  machine_map m;
  for (std::string const& name : nics) m.nics.push_back({.rdma = name});
  m.numa_nodes.push_back(
      {.name = "this machine",
       .to_nic = std::vector<nic_way>(nics.size(), {nearness::same_package, 0})});
  return m;
}

result<void> run(options const& o) {
  topology t;
  t.from = o.xml_file.empty() ? "this one" : o.xml_file;
  result<machine_map> machine = read_machine(o.xml_file);
  if (!machine && (!o.xml_file.empty() || machine.error().code != error_code::unsupported))
    return machine.error();
  auto const working = o.xml_file.empty() ? look_for_verbs(t) : std::vector<std::string>();
  t.machine = machine ? *machine : in_order(working);
  if (!machine)
    t.absent.push_back("hwloc, so that NICs are chosen in order (" + machine.error().message + ")");
  machine_map const& m = t.machine;
  if (machine && m.devices.empty()) t.absent.push_back("GPUs, so that ranks are at NUMA nodes");
  if (machine && m.nics.empty()) t.absent.push_back("NICs on PCI");
  if (!has_rdma(m)) {
    t.kind = rail_kind::interface;
    if (!m.nics.empty()) t.absent.push_back("RDMA NICs, so that rails are network interfaces");
  }
  int const natural = static_cast<int>(m.devices.empty() ? m.numa_nodes.size() : m.devices.size());
  t.ranks_per_node = o.ranks_per_node;
  t.places = places_of_ranks(m, o.ranks ? o.ranks : natural);
  t.rails = choose_rails(m, t.places, t.kind, o.rails);
  fmt::print("{}", o.json ? json_of(t) : table_of(t));
  if (std::fflush(stdout) != 0)
    return error{error_code::io, "the report cannot be written to standard output"};
  return {};
}

int topo_main(int argc, char** argv) {
  options o;
  CLI::App app("Prints the ranks, devices, NICs, reach and rails of a machine.", "ferry-topo");
  app.set_version_flag("--version", "ferry-topo " FERRY_VERSION);
  app.add_option("--xml", o.xml_file, "a machine as `lstopo FILE.xml` describes it [this one]")
      ->type_name("FILE");
  app.add_flag("--json", o.json, "for a program");
  app.add_option("--ranks", o.ranks, "ranks [one at each GPU, or else at each NUMA node]")
      ->check(CLI::Range(1, 1024))
      ->type_name("N");
  app.add_option("--rails", o.rails, "most NICs of a rank [2]")
      ->check(CLI::Range(1, 16))
      ->type_name("N");
  app.add_option("--ranks-per-node", o.ranks_per_node, "as in group_options [all]")
      ->check(CLI::Range(1, 1024))
      ->type_name("N");
  try {
    app.parse(argc, argv);
  } catch (CLI::ParseError const& e) {
    return app.exit(e);
  }
  auto const done = run(o);
  if (done) return 0;
  fmt::print(stderr, "ferry-topo: {}: {}\n", to_string(done.error().code), done.error().message);
  return 1;
}

}  // namespace
}  // namespace ferry::topo_tool

int main(int argc, char** argv) {
  try {
    return ferry::topo_tool::topo_main(argc, argv);
  } catch (std::exception const& e) {
    std::fprintf(stderr, "ferry-topo: %s\n", e.what());
    return 1;
  }
}
