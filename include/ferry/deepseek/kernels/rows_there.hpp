// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// How many rows there are, where only the device knows.
#pragma once

#include <ferry/base/platform.hpp>

#include <cstdint>

namespace ferry::deepseek {

/// `rows`, or fewer where a number in device memory says so.
FERRY_FN std::int64_t rows_there(std::int64_t rows, std::int32_t const* end) {
  return end != nullptr && *end < rows ? *end : rows;
}

}  // namespace ferry::deepseek
