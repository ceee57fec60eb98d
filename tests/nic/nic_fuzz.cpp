// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// libFuzzer's entry: the first byte chooses the vendor, the others are what happens to its queue.

#include "nic/corrupt_queue.hpp"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace ferry::test;
  if (size == 0) return 0;
  nic_vendor const vendor = all_vendors[data[0] % 3];
  ferry::device_verbs::with_format(vendor, [&]<class Format>(Format) {
    if (!run_corrupt_queue<Format>(vendor, {data + 1, size - 1}).guard_intact) std::abort();
  });
  return 0;
}
