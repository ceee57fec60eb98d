// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// A backend from another version of ferry.

#include "exec/device_backend.hpp"

extern "C" ferry::device_backend const* ferry_backend() {
  static ferry::device_backend const table{.version = 999999, .table_bytes = 8, .name = "other"};
  return &table;
}
