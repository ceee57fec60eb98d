// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// libfabric's provider tcp on the loopback interface, for tests.
#pragma once

#include <ferry/transport/libfabric.hpp>

#include <optional>
#include <string>

namespace ferry::test {

inline libfabric_options loopback_fabric() {
  libfabric_options o;
  o.provider = "tcp";
  o.address = "127.0.0.1";
  return o;
}

/// Why it cannot be had here, if it cannot.
inline std::optional<std::string> why_no_fabric() {
  auto const domains = libfabric_domains(loopback_fabric());
  if (domains) return {};
  return domains.error().message;
}

}  // namespace ferry::test
