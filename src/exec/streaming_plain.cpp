// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/exec/cpu/streaming.hpp>

#include <cstring>

namespace ferry {

// Where ferry knows no such stores, ordinary ones are as right.
void stream_copy(std::byte* to, std::byte const* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}

void finish_streaming() {}

}  // namespace ferry
