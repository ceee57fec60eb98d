// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The one argument of every kernel on a GPU, as docs/kernel_abi.md describes it.
#pragma once

#include <ferry/exec/gpu/gpu_waits.hpp>
#include <ferry/transport/peer_table.hpp>

#include <cstddef>
#include <cstdint>

namespace ferry {

template <class Kernel>
struct gpu_arguments {
  std::int32_t blocks;         ///< of the grid
  std::int32_t teams;          ///< per block
  std::byte* scratch;          ///< [blocks * teams, scratch_stride]
  std::size_t scratch_stride;  ///< bytes
  std::byte* own_flags;        ///< as `peers` says for this rank
  std::byte* own_rows;
  gpu_waits waits;
  peer_table peers;
  Kernel kernel;
};

/// What all devices take as arguments of a kernel.
inline constexpr std::size_t most_argument_bytes = 4096;

}  // namespace ferry
