// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Whether a sanitizer watches this build: it is many times slower, and sees in a few turns what
/// there is to see.
#pragma once

namespace ferry::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool is_sanitized = true;
#else
inline constexpr bool is_sanitized = false;
#endif

}  // namespace ferry::test
