// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/base/types.hpp>

namespace ferry {

char const* to_string(dtype type) {
  switch (type) {
    case dtype::f32: return "f32";
    case dtype::bf16: return "bf16";
    case dtype::fp16: return "fp16";
    case dtype::e4m3: return "e4m3";
    case dtype::e4m3fnuz: return "e4m3fnuz";
    case dtype::e8m0: return "e8m0";
    case dtype::byte: return "byte";
  }
  return "unknown";
}

char const* to_string(wire w) {
  switch (w) {
    case wire::f32: return "f32";
    case wire::bf16: return "bf16";
    case wire::fp16: return "fp16";
    case wire::fp8_e4m3: return "fp8_e4m3";
    case wire::fp8_e4m3fnuz: return "fp8_e4m3fnuz";
    case wire::fp8_ue8m0: return "fp8_ue8m0";
    case wire::opaque: return "opaque";
  }
  return "unknown";
}

}  // namespace ferry
