// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// What a build without the headers of libfabric has in their place.

#include <ferry/transport/libfabric.hpp>

#include "base/fail.hpp"

namespace ferry {

result<std::vector<std::string>> libfabric_domains(libfabric_options const&) {
  return fail(error_code::unsupported, "this build of ferry has no libfabric");
}

result<std::unique_ptr<transport>> make_libfabric_transport(int, int, libfabric_options,
                                                            std::vector<int>) {
  return fail(error_code::unsupported, "this build of ferry has no libfabric");
}

}  // namespace ferry
