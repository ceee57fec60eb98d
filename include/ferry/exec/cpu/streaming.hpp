// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Stores that go past the caches: for rows so many that none of them would still be there when it
/// is read.
#pragma once

#include <cstddef>

namespace ferry {

/// Copies like memcpy, but without bringing the destination into the caches. The stores are ordered
/// by `finish_streaming` only: not by a release store, nor by unlocking a mutex.
void stream_copy(std::byte* to, std::byte const* from, std::size_t bytes);

/// Everything that this thread streamed before comes before everything that it stores from now on.
void finish_streaming();

/// Bytes of this machine's last cache, which its cores share, as far as it can be believed: at most
/// 32 MiB.
std::size_t last_cache_bytes();

}  // namespace ferry
