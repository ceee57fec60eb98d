// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/exec/cpu/streaming.hpp>

#include <unistd.h>

#include <algorithm>
#include <initializer_list>

namespace ferry {

namespace {

// A virtual machine is told of all its host's caches, and has a slice of them at best.
constexpr std::size_t most_believed = std::size_t{32} << 20;

}  // namespace

std::size_t last_cache_bytes() {
  for (int level : {_SC_LEVEL4_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE})
    if (long const bytes = sysconf(level); bytes > 0)
      return std::min(static_cast<std::size_t>(bytes), most_believed);
  return most_believed;
}

}  // namespace ferry
