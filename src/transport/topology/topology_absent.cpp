// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// What a build without the headers of hwloc has in their place.

#include <ferry/transport/rails.hpp>

#include "base/fail.hpp"

namespace ferry {

result<machine_map> read_machine(std::string const&, std::string const&) {
  return fail(error_code::unsupported, "this build of ferry has no hwloc");
}

}  // namespace ferry
