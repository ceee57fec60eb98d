// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// SHA-256 (FIPS 180-4) and HMAC over it (RFC 2104).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace ferry {

using digest = std::array<std::byte, 32>;

class sha256 {
 public:
  sha256& add(std::span<std::byte const> more);
  /// The digest of all that was added. Nothing may be added after it.
  digest finish();

 private:
  void take_block(std::byte const* block);
  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, 64> block_{};
  std::size_t filled_ = 0;
  std::uint64_t bytes_ = 0;
};

digest hmac_sha256(std::span<std::byte const> key, std::span<std::byte const> message);

/// Takes as long for any two digests.
bool equal(digest const& a, digest const& b);

}  // namespace ferry
