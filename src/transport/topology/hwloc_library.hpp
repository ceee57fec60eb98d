// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The functions of hwloc that ferry calls, found when they are first needed.
#pragma once

#include <ferry/base/result.hpp>

#include <hwloc.h>

#include <string>

namespace ferry {

struct hwloc_library {
  unsigned (*interface_version)();
  int (*init)(hwloc_topology_t*);
  void (*destroy)(hwloc_topology_t);
  int (*keep_io)(hwloc_topology_t, hwloc_type_filter_e);
  int (*read_file)(hwloc_topology_t, char const*);
  int (*load)(hwloc_topology_t);
  unsigned (*count)(hwloc_topology_t, int);
  hwloc_obj_t (*object)(hwloc_topology_t, int, unsigned);
  int (*first_of)(hwloc_const_bitmap_t);
  int (*size_of)(hwloc_const_bitmap_t);
};

/// Loads the library, once per name; it stays for the life of the process.
/// Errors   unsupported the library is not there, lacks a function, or has another interface
result<hwloc_library const*> load_hwloc(std::string const& name);

}  // namespace ferry
