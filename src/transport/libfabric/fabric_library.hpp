// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The functions of libfabric that ferry calls by name, found when they are first needed. All
/// others its headers call through the tables of opened objects.
#pragma once

#include <ferry/base/result.hpp>

#include <rdma/fabric.h>

#include <string>

namespace ferry {

struct fabric_library {
  int (*getinfo)(std::uint32_t, char const*, char const*, std::uint64_t, fi_info const*, fi_info**);
  void (*freeinfo)(fi_info*);
  fi_info* (*dupinfo)(fi_info const*);
  int (*fabric)(fi_fabric_attr*, fid_fabric**, void*);
  char const* (*error_text)(int);
};

/// Loads the library, once per name; it stays for the life of the process.
/// Errors   unsupported the library is not there, or lacks a function
result<fabric_library const*> load_fabric(std::string const& name);

}  // namespace ferry
