// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/memory/window.hpp>

#include "base/fail.hpp"
#include "memory/descriptor.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

namespace ferry {
namespace {

/// `bytes` in whole pages.
result<std::size_t> in_pages(std::size_t bytes) {
  auto const page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  auto const limit = static_cast<std::size_t>(PTRDIFF_MAX) - page;
  if (bytes == 0) return fail(error_code::invalid_argument, "a window of 0 bytes; at least 1");
  if (bytes > limit)
    return fail(error_code::out_of_memory, "a window of {} bytes; the address space ends at {}",
                bytes, limit);
  return (bytes + page - 1) / page * page;
}

error refused(std::string_view what, std::size_t bytes, int errno_value) {
  bool const too_much = errno_value == ENOMEM || errno_value == ENOSPC || errno_value == EFBIG ||
                        errno_value == EOVERFLOW || errno_value == EINVAL;
  return fail_errno(too_much ? error_code::out_of_memory : error_code::io,
                    fmt::format("{} a window of {} bytes", what, bytes), errno_value);
}

/// An anonymous file that cannot be executed where the kernel knows how to say so (6.3 and later).
int anonymous_file() {
  unsigned const flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  int fd = ::memfd_create("ferry-window", flags | MFD_NOEXEC_SEAL);
  if (fd < 0 && errno == EINVAL) fd = ::memfd_create("ferry-window", flags);
  return fd;
}

}  // namespace

window::memory::~memory() {
  if (auto const length = in_pages(bytes)) ::munmap(data, *length);
  if (descriptor >= 0) ::close(descriptor);
}

result<window> window::plain(std::size_t bytes) {
  FERRY_TRY(auto const length, in_pages(bytes));
  void* const at =
      ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return refused("cannot allocate", bytes, errno);
  window made;
  made.memory_ = std::make_shared<memory>(static_cast<std::byte*>(at), bytes, -1);
  return made;
}

result<window> window::shareable(std::size_t bytes) {
  FERRY_TRY(auto const length, in_pages(bytes));
  // Growing a file past RLIMIT_FSIZE raises a signal that kills the process: ask first.
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      length > limit.rlim_cur)
    return fail(error_code::out_of_memory, "a window of {} bytes; the file size limit is {}", bytes,
                limit.rlim_cur);

  ferry::descriptor file{anonymous_file()};
  if (!file)
    return fail_errno(errno == ENOSYS ? error_code::unsupported : error_code::io,
                      "cannot create an anonymous file for a window", errno);
  if (::ftruncate(file.number(), static_cast<off_t>(length)) != 0)
    return refused("cannot allocate", bytes, errno);
  if (::fcntl(file.number(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return refused("cannot seal", bytes, errno);
  void* const at = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, file.number(), 0);
  if (at == MAP_FAILED) return refused("cannot map", bytes, errno);
  window made;
  made.memory_ = std::make_shared<memory>(static_cast<std::byte*>(at), bytes, file.release());
  return made;
}

result<window> window::map(int descriptor, std::size_t bytes) {
  FERRY_TRY(auto const length, in_pages(bytes));
  struct stat about {};
  if (::fstat(descriptor, &about) != 0)
    return fail_errno(error_code::io, fmt::format("cannot ask about descriptor {}", descriptor),
                      errno);
  // Whoever may still shrink the file could make every load of ours a bus error.
  int const seals = ::fcntl(descriptor, F_GET_SEALS);
  if (seals < 0)
    return fail(error_code::malformed_input, "descriptor {} is no memfd: it has no seals",
                descriptor);
  if ((seals & F_SEAL_SHRINK) == 0)
    return fail(error_code::malformed_input, "descriptor {} may still shrink: its seals are {:#x}",
                descriptor, seals);
  if (about.st_size < 0 || static_cast<std::size_t>(about.st_size) < bytes)
    return fail(error_code::malformed_input, "descriptor {} holds {} bytes, fewer than {}",
                descriptor, about.st_size, bytes);
  void* const at = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (at == MAP_FAILED) return refused("cannot map", bytes, errno);
  window made;
  made.memory_ = std::make_shared<memory>(static_cast<std::byte*>(at), bytes, -1);
  return made;
}

}  // namespace ferry
