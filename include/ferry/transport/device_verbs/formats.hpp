// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The vendors whose queues can be written directly, chosen at run time per NIC.
#pragma once

#include <ferry/transport/device_verbs/bnxt.hpp>
#include <ferry/transport/device_verbs/ionic.hpp>
#include <ferry/transport/device_verbs/mlx5.hpp>

#include <cstdint>
#include <utility>

namespace ferry::device_verbs {

enum class nic_vendor : std::uint8_t { mlx5, bnxt, ionic };

constexpr char const* to_string(nic_vendor vendor) {
  switch (vendor) {
    case nic_vendor::mlx5: return "mlx5";
    case nic_vendor::bnxt: return "bnxt";
    case nic_vendor::ionic: return "ionic";
  }
  return "?";
}

/// Calls `f` with the vendor's format, as a value of an empty type.
template <class F>
decltype(auto) with_format(nic_vendor vendor, F&& f) {
  switch (vendor) {
    case nic_vendor::bnxt: return std::forward<F>(f)(bnxt{});
    case nic_vendor::ionic: return std::forward<F>(f)(ionic{});
    case nic_vendor::mlx5: break;
  }
  return std::forward<F>(f)(mlx5{});
}

}  // namespace ferry::device_verbs
