// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "base/fail.hpp"

#include <system_error>

namespace ferry {

error fail_errno(error_code code, std::string_view what, int errno_value,
                 std::source_location where) {
  return {code, fmt::format("{}: {}", what, std::generic_category().message(errno_value)), where};
}

}  // namespace ferry
