// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "transport/verbs/verbs_library.hpp"

#include "base/fail.hpp"

#include <dlfcn.h>

#include <map>
#include <memory>
#include <mutex>

namespace ferry {
namespace {

template <class F>
bool find(void* library, char const* name, F& into, std::string& missing) {
  into = reinterpret_cast<F>(::dlsym(library, name));
  if (!into && missing.empty()) missing = name;
  return into != nullptr;
}

result<std::unique_ptr<verbs_library>> load(std::string const& name) {
  void* const library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    char const* const why = ::dlerror();
    return fail(error_code::unsupported, "no RDMA library: {}", why ? why : name.c_str());
  }
  auto v = std::make_unique<verbs_library>();
  std::string missing;
  find(library, "ibv_get_device_list", v->list_devices, missing);
  find(library, "ibv_free_device_list", v->free_list, missing);
  find(library, "ibv_get_device_name", v->name_of, missing);
  find(library, "ibv_open_device", v->open, missing);
  find(library, "ibv_close_device", v->close, missing);
  find(library, "ibv_query_device", v->query_device, missing);
  find(library, "ibv_query_gid", v->query_gid, missing);
  find(library, "ibv_alloc_pd", v->alloc_pd, missing);
  find(library, "ibv_dealloc_pd", v->dealloc_pd, missing);
  find(library, "ibv_reg_mr", v->reg_mr, missing);
  find(library, "ibv_dereg_mr", v->dereg_mr, missing);
  find(library, "ibv_create_cq", v->create_cq, missing);
  find(library, "ibv_destroy_cq", v->destroy_cq, missing);
  find(library, "ibv_create_qp", v->create_qp, missing);
  find(library, "ibv_modify_qp", v->modify_qp, missing);
  find(library, "ibv_destroy_qp", v->destroy_qp, missing);
  find(library, "ibv_wc_status_str", v->status_name, missing);
  if (!missing.empty()) {
    ::dlclose(library);
    return fail(error_code::unsupported, "{} is no RDMA library: it has no {}", name, missing);
  }
  return v;
}

}  // namespace

result<verbs_library const*> load_verbs(std::string const& name) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<verbs_library>> loaded;
  std::lock_guard lock(mutex);
  if (auto const it = loaded.find(name); it != loaded.end())
    return static_cast<verbs_library const*>(it->second.get());
  FERRY_TRY(std::unique_ptr<verbs_library> made, load(name));
  return static_cast<verbs_library const*>((loaded[name] = std::move(made)).get());
}

}  // namespace ferry
