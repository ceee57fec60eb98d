// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "transport/libfabric/fabric_library.hpp"

#include "base/shared_library.hpp"

#include <map>
#include <memory>
#include <mutex>

namespace ferry {

result<fabric_library const*> load_fabric(std::string const& name) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<fabric_library>> loaded;
  std::lock_guard lock(mutex);
  if (auto const it = loaded.find(name); it != loaded.end())
    return static_cast<fabric_library const*>(it->second.get());
  FERRY_TRY(shared_library library, shared_library::open(name));
  auto f = std::make_unique<fabric_library>();
  library.find("fi_getinfo", f->getinfo);
  library.find("fi_freeinfo", f->freeinfo);
  library.find("fi_dupinfo", f->dupinfo);
  library.find("fi_fabric", f->fabric);
  library.find("fi_strerror", f->error_text);
  FERRY_CHECK(library.complete());
  library.keep();
  return static_cast<fabric_library const*>((loaded[name] = std::move(f)).get());
}

}  // namespace ferry
