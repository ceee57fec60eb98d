// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Rails: which NICs of a machine a rank uses, by how near they lie to its device.
#pragma once

#include <ferry/base/result.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ferry {

/// How near a NIC lies to a place of its machine; the nearest first.
enum class nearness : std::uint8_t {
  same_switch,    ///< behind one PCI switch
  same_numa,      ///< at one NUMA node
  same_package,   ///< at one processor, or not known any better
  other_package,  ///< behind another processor
};
char const* to_string(nearness near);

struct machine_nic {
  std::string rdma{};        ///< its RDMA device ("mlx5_0"); empty: none
  std::string interface {};  ///< its network interface ("eth0"); empty: none
  std::string bus{};         ///< PCI address, "0000:0c:00.0"
  int numa_node = -1;        ///< -1: not known, or several

  std::string const& name() const { return rdma.empty() ? interface : rdma; }
};

/// The way from a place to a NIC.
struct nic_way {
  nearness near;
  int bridges;  ///< of PCI on the way, within one switch; else 0
};

/// Where a rank may be: at a device (GPU), or at a NUMA node.
struct machine_place {
  std::string name{};  ///< of a device as its runtime has it, or its PCI address; "NUMA node 0"
  std::string bus{};   ///< PCI address of a device
  int numa_node = -1;
  std::vector<nic_way> to_nic{};  ///< in the order of the machine's NICs
};

/// What of a machine matters to its rails; everything in the order of the PCI addresses.
struct machine_map {
  int num_packages = 0;
  std::vector<machine_place> devices{};
  std::vector<machine_place> numa_nodes{};
  std::vector<machine_nic> nics{};
};

/// Reads this machine, or one that is described by a file as `lstopo machine.xml` writes it.
/// Errors   unsupported this build has no hwloc, or the library is not there; io the machine or the
///          file cannot be read, or the file is none of hwloc's
result<machine_map> read_machine(std::string const& xml_file = {},
                                 std::string const& library = "libhwloc.so.15");

/// What a rail must have.
enum class rail_kind : std::uint8_t { rdma, interface };

/// A NIC that a rank uses.
struct rail {
  int nic;  ///< among those of the machine
  nearness near;
};

/// Chooses up to `rails` NICs for each of the ranks of a machine, the same on every rank that asks.
/// A rank gets its nearest NICs, and of equally near ones those that the fewest use. NICs of
/// another NUMA node are taken only by ranks that have none at their own.
/// Shapes   `places` has a place for each rank; the result a list for each, empty only where there
///          is no NIC of that kind
std::vector<std::vector<rail>> choose_rails(machine_map const& machine,
                                            std::span<machine_place const* const> places,
                                            rail_kind kind, int rails);

/// Where `ranks` ranks of a machine are, in order: each at a device, in turn; where there are none,
/// in equal shares at the NUMA nodes.
std::vector<machine_place const*> places_of_ranks(machine_map const& machine, int ranks);

}  // namespace ferry
