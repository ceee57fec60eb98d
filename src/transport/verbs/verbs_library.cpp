// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "transport/verbs/verbs_library.hpp"

#include "base/shared_library.hpp"

#include <map>
#include <memory>
#include <mutex>

namespace ferry {

result<verbs_library const*> load_verbs(std::string const& name) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<verbs_library>> loaded;
  std::lock_guard lock(mutex);
  if (auto const it = loaded.find(name); it != loaded.end())
    return static_cast<verbs_library const*>(it->second.get());
  FERRY_TRY(shared_library library, shared_library::open(name));
  auto v = std::make_unique<verbs_library>();
  library.find("ibv_get_device_list", v->list_devices);
  library.find("ibv_free_device_list", v->free_list);
  library.find("ibv_get_device_name", v->name_of);
  library.find("ibv_open_device", v->open);
  library.find("ibv_close_device", v->close);
  library.find("ibv_query_device", v->query_device);
  library.find("ibv_query_gid", v->query_gid);
  library.find("ibv_alloc_pd", v->alloc_pd);
  library.find("ibv_dealloc_pd", v->dealloc_pd);
  library.find("ibv_reg_mr", v->reg_mr);
  library.find("ibv_dereg_mr", v->dereg_mr);
  library.find("ibv_create_cq", v->create_cq);
  library.find("ibv_destroy_cq", v->destroy_cq);
  library.find("ibv_create_qp", v->create_qp);
  library.find("ibv_modify_qp", v->modify_qp);
  library.find("ibv_destroy_qp", v->destroy_qp);
  library.find("ibv_wc_status_str", v->status_name);
  FERRY_CHECK(library.complete());
  library.keep();
  return static_cast<verbs_library const*>((loaded[name] = std::move(v)).get());
}

}  // namespace ferry
