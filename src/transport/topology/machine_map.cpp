// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// A machine's devices, NICs and NUMA nodes as hwloc finds them.

#include <ferry/transport/rails.hpp>

#include "base/fail.hpp"
#include "transport/topology/hwloc_library.hpp"

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

namespace ferry {
namespace {

using pci_device = hwloc_obj_attr_u::hwloc_pcidev_attr_s;

/// An object's place in the machine.
struct position {
  std::vector<hwloc_obj_t> bridges{};  ///< of PCI, the nearest first
  int numa_node = -1;
  int package = -1;
};

nic_way way_between(position const& a, position const& b) {
  for (std::size_t i = 0; i < a.bridges.size(); ++i)
    for (std::size_t j = 0; j < b.bridges.size(); ++j)
      if (a.bridges[i] == b.bridges[j]) return {nearness::same_switch, static_cast<int>(i + j)};
  if (a.numa_node >= 0 && a.numa_node == b.numa_node) return {nearness::same_numa, 0};
  if (a.package == b.package || a.package < 0 || b.package < 0) return {nearness::same_package, 0};
  return {nearness::other_package, 0};
}

/// Whether the PCI device computes: a GPU or an accelerator, and no screen of a board.
bool computes(pci_device const& pci) {
  constexpr int display = 0x0300, render = 0x0302, other_display = 0x0380, accelerator = 0x1200;
  if (pci.class_id == display) return pci.vendor_id == 0x1002 || pci.vendor_id == 0x10de;
  return pci.class_id == render || pci.class_id == other_display || pci.class_id == accelerator;
}

std::string bus_of(pci_device const& pci) {
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", pci.domain, pci.bus, pci.dev, pci.func);
}

bool starts_with_any(std::string_view text, std::initializer_list<std::string_view> starts) {
  return std::any_of(starts.begin(), starts.end(),
                     [&](std::string_view s) { return text.starts_with(s); });
}

class reader {
 public:
  explicit reader(hwloc_library const& hwloc) : hwloc_(hwloc) {}
  ~reader() {
    if (topology_) hwloc_.destroy(topology_);
  }
  reader(reader const&) = delete;

  result<machine_map> read(std::string const& xml_file) {
    if (hwloc_.init(&topology_) != 0) return failed("hwloc does not start");
    if (!xml_file.empty() && hwloc_.read_file(topology_, xml_file.c_str()) != 0)
      return failed("hwloc cannot read " + xml_file);
    if (hwloc_.keep_io(topology_, HWLOC_TYPE_FILTER_KEEP_IMPORTANT) != 0)
      return failed("hwloc does not look at PCI");
    if (hwloc_.load(topology_) != 0)
      return failed(xml_file.empty() ? "hwloc cannot read this machine"
                                     : "hwloc cannot read " + xml_file);
    add_devices_and_nics();
    add_numa_nodes();
    return std::move(map_);
  }

 private:
  template <class Visit>
  void each(int depth, Visit const& visit) const {
    unsigned const count = hwloc_.count(topology_, depth);
    for (unsigned i = 0; i < count; ++i) visit(hwloc_.object(topology_, depth, i));
  }

  error failed(std::string const& what) const {
    return fail_errno(error_code::io, what, errno ? errno : EINVAL);
  }

  position position_of(hwloc_obj_t object) const {
    position made;
    hwloc_obj_t up = object;
    for (; up && is_io(up); up = up->parent)
      if (up->type == HWLOC_OBJ_BRIDGE && up->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI)
        made.bridges.push_back(up);
    if (up && hwloc_.size_of(up->nodeset) == 1) made.numa_node = hwloc_.first_of(up->nodeset);
    for (; up && made.package < 0; up = up->parent)
      if (up->type == HWLOC_OBJ_PACKAGE) made.package = static_cast<int>(up->logical_index);
    return made;
  }

  static bool is_io(hwloc_obj_t o) {
    return o->type == HWLOC_OBJ_BRIDGE || o->type == HWLOC_OBJ_PCI_DEVICE ||
           o->type == HWLOC_OBJ_OS_DEVICE;
  }

  /// What runtimes and drivers call the PCI device: the first such name, and better ones if any.
  static void collect(hwloc_obj_t at, std::string& device, machine_nic& nic) {
    for (hwloc_obj_t child = at->io_first_child; child; child = child->next_sibling) {
      if (child->type != HWLOC_OBJ_OS_DEVICE || !child->name) continue;
      auto const kind = child->attr->osdev.type;
      if (kind == HWLOC_OBJ_OSDEV_OPENFABRICS && nic.rdma.empty()) nic.rdma = child->name;
      if (kind == HWLOC_OBJ_OSDEV_NETWORK && nic.interface.empty()) nic.interface = child->name;
      if (kind == HWLOC_OBJ_OSDEV_GPU || kind == HWLOC_OBJ_OSDEV_COPROC) {
        bool const of_driver = starts_with_any(child->name, {"card", "render", "opencl", ":"});
        if (device.empty() ||
            (!of_driver && starts_with_any(device, {"card", "render", "opencl", ":"})))
          device = child->name;
      }
      collect(child, device, nic);
    }
  }

  void add_devices_and_nics() {
    std::vector<hwloc_obj_t> all;
    each(HWLOC_TYPE_DEPTH_PCI_DEVICE, [&](hwloc_obj_t o) { all.push_back(o); });
    std::sort(all.begin(), all.end(), [](hwloc_obj_t a, hwloc_obj_t b) {
      return bus_of(a->attr->pcidev) < bus_of(b->attr->pcidev);
    });
    std::vector<position> of_devices;
    for (hwloc_obj_t const o : all) {
      std::string device;
      machine_nic nic;
      collect(o, device, nic);
      std::string const bus = bus_of(o->attr->pcidev);
      position const here = position_of(o);
      if (computes(o->attr->pcidev)) {
        map_.devices.push_back({device.empty() ? bus : device, bus, here.numa_node});
        of_devices.push_back(here);
      } else if (!nic.name().empty()) {
        nic.bus = bus;
        nic.numa_node = here.numa_node;
        map_.nics.push_back(nic);
        of_nics_.push_back(here);
      }
    }
    for (std::size_t i = 0; i < of_devices.size(); ++i) add_ways(map_.devices[i], of_devices[i]);
  }

  void add_numa_nodes() {
    each(HWLOC_TYPE_DEPTH_NUMANODE, [&](hwloc_obj_t o) {
      auto const number = static_cast<int>(o->os_index);
      position here = position_of(o->parent);
      here.numa_node = number;
      map_.num_packages = std::max(map_.num_packages, here.package + 1);
      map_.numa_nodes.push_back({fmt::format("NUMA node {}", number), {}, number});
      add_ways(map_.numa_nodes.back(), here);
    });
  }

  void add_ways(machine_place& place, position const& here) const {
    for (position const& nic : of_nics_) place.to_nic.push_back(way_between(here, nic));
  }

  hwloc_library const& hwloc_;
  hwloc_topology_t topology_ = nullptr;
  machine_map map_;
  std::vector<position> of_nics_;
};

}  // namespace

result<machine_map> read_machine(std::string const& xml_file, std::string const& library) {
  FERRY_TRY(hwloc_library const* const hwloc, load_hwloc(library));
  return reader(*hwloc).read(xml_file);
}

}  // namespace ferry
