// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "group/machine.hpp"

#include "base/fail.hpp"

#include <sys/random.h>
#include <sys/stat.h>

#include <cerrno>
#include <fstream>

namespace ferry {

result<machine_id> this_machine() {
  constexpr auto path = "/proc/sys/kernel/random/boot_id";
  std::ifstream file(path);
  machine_id id{};
  if (!file) return fail_errno(error_code::io, fmt::format("cannot open {}", path), errno);
  if (!file.read(id.data(), id.size()))
    return fail(error_code::malformed_input, "{} holds {} characters, fewer than {}", path,
                file.gcount(), id.size());
  return id;
}

std::uint64_t network_namespace() {
  struct stat about {};
  return ::stat("/proc/self/ns/net", &about) == 0 ? about.st_ino : 0;
}

result<secret> fresh_secret() {
  secret made{};
  ssize_t got = 0;
  do got = ::getrandom(made.data(), sizeof made, 0);
  while (got < 0 && errno == EINTR);
  if (got != static_cast<ssize_t>(sizeof made))
    return fail_errno(error_code::io, "cannot get random bytes", errno);
  return made;
}

bool equal(secret const& a, secret const& b) {
  return ((a[0] ^ b[0]) | (a[1] ^ b[1])) == 0;
}

std::string to_hex(secret const& s) {
  return fmt::format("{:016x}{:016x}", s[0], s[1]);
}

}  // namespace ferry
