// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The model's kernels as a device launches them: one table per kind of device.
#pragma once

#include <ferry/base/result.hpp>
#include <ferry/deepseek/kernels/grouped_product.hpp>
#include <ferry/exec/device.hpp>

#include "deepseek/row_loops.hpp"

namespace ferry::deepseek {

/// What a launch needs beside the kernel. Everything that a kernel points to is device memory, or
/// memory that the device can reach, and outlives the launch.
struct strip_launch {
  void* stream = nullptr;  ///< the vendor's stream handle
  int blocks = 1;
  int teams = 1;  ///< per block
};

/// Asynchronous, on the calling thread's current device. Returns the vendor's status: 0 is success.
template <class Kernel>
struct launch_of {
  int (*launch)(strip_launch const&, Kernel const&);
};
template <class... Kernels>
struct launches_of : launch_of<Kernels>... {};

using row_launches =
    launches_of<attend, gate_rows, normalise_rows, add_rows, narrow_rows, quantise_rows,
                decode_rows, rotate_heads, fill_cache, choose_experts, next_token,
                grouped_product<float>, grouped_product<bf16>>;

struct row_kernels : row_launches {
  int lanes;   ///< of a team
  int blocks;  ///< the grid to launch
  int teams;
  /// Loads every kernel, so that no later launch does.
  int (*load)();
  /// The vendor's text for a status.
  char const* (*describe)(int status);

  int strips() const { return blocks * teams * (lanes / strip_lanes); }
};

/// All launches by `Launch<Kernel>::launch`.
template <template <class> class Launch, class... Kernels>
constexpr launches_of<Kernels...> launches_by(launches_of<Kernels...> const*) {
  return {launch_of<Kernels>{Launch<Kernels>::launch}...};
}

/// Those of a device other than the CPU.
/// Errors   unsupported the CPU, whose kernels are row_loops; a backend without the model's kernels
result<row_kernels const*> row_kernels_of(device const& where);

/// The table of a vendor's library, whose name its entry point has.
using row_kernels_entry = row_kernels const* (*)();

}  // namespace ferry::deepseek
