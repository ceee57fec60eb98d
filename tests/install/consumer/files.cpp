// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Needs the header and the library of ferry::files.
#include <ferry/files/safetensors.hpp>

bool no_tensors_lie_here() {
  return !ferry::safetensors::open("does/not/exist").has_value();
}
