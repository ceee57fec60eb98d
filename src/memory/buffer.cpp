// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/memory/buffer.hpp>

#include "base/fail.hpp"

#include <sys/mman.h>

#include <cerrno>

namespace ferry {

result<buffer> buffer::allocate(std::size_t bytes) {
  buffer made;
  if (bytes == 0) return made;
  void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED)
    return fail_errno(error_code::out_of_memory, fmt::format("cannot allocate {} bytes", bytes),
                      errno);
  made.data_ = static_cast<std::byte*>(at);
  made.bytes_ = bytes;
  return made;
}

buffer::~buffer() {
  if (data_) ::munmap(data_, bytes_);
}

}  // namespace ferry
