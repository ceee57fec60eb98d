// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Needs the header and the library of ferry::deepseek.
#include <ferry/deepseek/model_config.hpp>

bool no_model_lies_here() {
  return !ferry::deepseek::load_model_config("does/not/exist").has_value();
}
