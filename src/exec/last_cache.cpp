// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/exec/cpu/streaming.hpp>

#include <unistd.h>

#include <initializer_list>

namespace ferry {

std::size_t last_cache_bytes() {
  for (int level : {_SC_LEVEL4_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE})
    if (long const bytes = sysconf(level); bytes > 0) return static_cast<std::size_t>(bytes);
  return std::size_t{32} << 20;
}

}  // namespace ferry
