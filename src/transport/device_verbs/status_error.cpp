// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "transport/device_verbs/status_error.hpp"

#include "base/fail.hpp"

namespace ferry::device_verbs {

char const* to_string(nic_status status) {
  switch (status) {
    case nic_status::ok: return "ok";
    case nic_status::local_length: return "local_length";
    case nic_status::local_operation: return "local_operation";
    case nic_status::local_protection: return "local_protection";
    case nic_status::flushed: return "flushed";
    case nic_status::bad_response: return "bad_response";
    case nic_status::remote_invalid: return "remote_invalid";
    case nic_status::remote_access: return "remote_access";
    case nic_status::remote_operation: return "remote_operation";
    case nic_status::retry_exceeded: return "retry_exceeded";
    case nic_status::receiver_not_ready: return "receiver_not_ready";
    case nic_status::other: return "other";
    case nic_status::malformed_completion: return "malformed_completion";
    case nic_status::stuck: return "stuck";
  }
  return "?";
}

error error_of(nic_status status, int rank) {
  error_code const code =
      status == nic_status::retry_exceeded ? error_code::unreachable : error_code::transport;
  return fail(code, "the NIC ended an operation to rank {} with {}", rank, to_string(status));
}

}  // namespace ferry::device_verbs
