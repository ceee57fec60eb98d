// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The shared libraries of GPU vendors' backends, opened when they are asked for.
#pragma once

#include "exec/device_backend.hpp"

#include <string>

namespace ferry {

/// The backend in libferry_<name>.so, which lies beside the file that holds ferry (the program, or
/// libferry.so), in a folder `lib` next to that one's, or where the system looks. Opened once and
/// never closed.
/// Errors   unsupported no such library, with what the system said of each place; another version
result<device_backend const*> open_backend(std::string const& name);

/// The same with the file named.
result<device_backend const*> open_backend_file(std::string const& file);

}  // namespace ferry
