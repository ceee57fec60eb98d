// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// libFuzzer's entry: the bytes are a safetensors file.

#include <ferry/files/safetensors.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace ferry;
  int const file = ::memfd_create("fuzz", MFD_CLOEXEC);
  if (file < 0) return 0;
  if (::write(file, data, size) == static_cast<ssize_t>(size)) {
    std::string const path = "/proc/self/fd/" + std::to_string(file);
    if (auto const opened = safetensors::open(path)) {
      unsigned sum = 0;
      for (auto const& name : opened->names())
        if (auto const tensor = opened->tensor(name)) {
          if (tensor->data.size() > size) std::abort();
          // Every byte that is said to be there is.
          for (std::byte const b : tensor->data) sum += static_cast<unsigned>(b);
        }
      static unsigned volatile kept;
      kept = sum;
    }
  }
  ::close(file);
  return 0;
}
