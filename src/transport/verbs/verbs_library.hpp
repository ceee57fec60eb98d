// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The functions of libibverbs that ferry calls, found when they are first needed. What is not here
/// (posting, polling) the library's header calls through a device's own table.
#pragma once

#include <ferry/base/result.hpp>

#include <infiniband/verbs.h>

#include <string>

namespace ferry {

struct verbs_library {
  ibv_device** (*list_devices)(int*);
  void (*free_list)(ibv_device**);
  char const* (*name_of)(ibv_device*);
  ibv_context* (*open)(ibv_device*);
  int (*close)(ibv_context*);
  int (*query_device)(ibv_context*, ibv_device_attr*);
  int (*query_gid)(ibv_context*, std::uint8_t, int, union ibv_gid*);
  ibv_pd* (*alloc_pd)(ibv_context*);
  int (*dealloc_pd)(ibv_pd*);
  ibv_mr* (*reg_mr)(ibv_pd*, void*, std::size_t, int);
  int (*dereg_mr)(ibv_mr*);
  ibv_cq* (*create_cq)(ibv_context*, int, void*, ibv_comp_channel*, int);
  int (*destroy_cq)(ibv_cq*);
  ibv_qp* (*create_qp)(ibv_pd*, ibv_qp_init_attr*);
  int (*modify_qp)(ibv_qp*, ibv_qp_attr*, int);
  int (*destroy_qp)(ibv_qp*);
  char const* (*status_name)(ibv_wc_status);
};

/// Loads the library, once per name; it stays for the life of the process.
/// Errors   unsupported the library is not there, or lacks a function
result<verbs_library const*> load_verbs(std::string const& name);

}  // namespace ferry
