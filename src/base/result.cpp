// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/base/result.hpp>

#include <cstdio>
#include <cstdlib>

namespace ferry {

char const* to_string(error_code code) {
  switch (code) {
    case error_code::invalid_argument: return "invalid_argument";
    case error_code::invalid_state: return "invalid_state";
    case error_code::malformed_input: return "malformed_input";
    case error_code::io: return "io";
    case error_code::unsupported: return "unsupported";
    case error_code::out_of_memory: return "out_of_memory";
    case error_code::capacity: return "capacity";
    case error_code::unreachable: return "unreachable";
    case error_code::timeout: return "timeout";
    case error_code::transport: return "transport";
    case error_code::device: return "device";
    case error_code::internal: return "internal";
  }
  return "unknown";
}

bad_result::bad_result(struct error e)
    : std::runtime_error(std::string(to_string(e.code)) + ": " + e.message), error_(std::move(e)) {}

void broken_precondition(char const* condition, char const* what, char const* file, int line) {
  std::fprintf(stderr, "ferry: %s:%d: broken precondition: %s (%s)\n", file, line, what, condition);
  std::abort();
}

}  // namespace ferry
