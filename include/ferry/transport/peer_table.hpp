// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Where the windows of all ranks lie, as a device sees them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ferry {

/// Most ranks whose windows a device can have mapped.
inline constexpr int max_mapped_ranks = 64;

/// Goes to kernels by value, inside their arguments: a table in memory would cost a dependent load
/// for every row, and the compiler would no longer know what its pointers point to.
///
/// A rank's window may be two allocations, of flags and of rows. Each base is such that base +
/// offset is the place for every offset of its part: the base of rows is the start of the rows'
/// allocation less the bytes of the flag part.
struct peer_table {
  std::byte* flags[max_mapped_ranks] = {};
  std::byte* rows[max_mapped_ranks] = {};
  std::int32_t rank = 0;
};

}  // namespace ferry
