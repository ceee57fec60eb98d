// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "rank_device.hpp"

namespace ferry::decode {
namespace {

/// Device `rank` of that kind; where there are fewer, they are dealt out again.
result<device> in_turn(std::string const& kind, int rank) {
  FERRY_TRY(device const first, device::open(kind));
  int count = 1;
  while (count <= rank && device::open(kind + ":" + std::to_string(count))) ++count;
  return device::open(kind + ":" + std::to_string(rank % count));
}

}  // namespace

result<device> device_of_rank(std::string const& name, int rank) {
  if (name == "hip" || name == "cuda") return in_turn(name, rank);
  if (!name.empty()) return device::open(name);
  for (char const* kind : {"hip", "cuda"}) {
    if (auto found = in_turn(kind, rank)) return found;
  }
  return device();
}

}  // namespace ferry::decode
