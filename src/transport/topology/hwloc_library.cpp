// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "transport/topology/hwloc_library.hpp"

#include "base/fail.hpp"
#include "base/shared_library.hpp"

#include <map>
#include <memory>
#include <mutex>

namespace ferry {

result<hwloc_library const*> load_hwloc(std::string const& name) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<hwloc_library>> loaded;
  std::lock_guard lock(mutex);
  if (auto const it = loaded.find(name); it != loaded.end())
    return static_cast<hwloc_library const*>(it->second.get());
  FERRY_TRY(shared_library library, shared_library::open(name));
  auto h = std::make_unique<hwloc_library>();
  library.find("hwloc_get_api_version", h->interface_version);
  library.find("hwloc_topology_init", h->init);
  library.find("hwloc_topology_destroy", h->destroy);
  library.find("hwloc_topology_set_io_types_filter", h->keep_io);
  library.find("hwloc_topology_set_xml", h->read_file);
  library.find("hwloc_topology_load", h->load);
  library.find("hwloc_get_nbobjs_by_depth", h->count);
  library.find("hwloc_get_obj_by_depth", h->object);
  library.find("hwloc_bitmap_first", h->first_of);
  library.find("hwloc_bitmap_weight", h->size_of);
  FERRY_CHECK(library.complete());
  // Objects are laid out alike within one major version.
  if (unsigned const theirs = h->interface_version(); theirs >> 16 != HWLOC_API_VERSION >> 16)
    return fail(error_code::unsupported, "{} has version {} of the interface of hwloc, not {}",
                name, theirs >> 16, HWLOC_API_VERSION >> 16);
  library.keep();
  return static_cast<hwloc_library const*>((loaded[name] = std::move(h)).get());
}

}  // namespace ferry
