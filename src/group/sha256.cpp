// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "group/sha256.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace ferry {
namespace {

// The first 32 bits of the fractions of the cube roots of the first 64 primes.
constexpr std::uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

std::uint32_t big_endian(std::byte const* at) {
  std::uint32_t word = 0;
  for (int i = 0; i < 4; ++i) word = word << 8 | static_cast<std::uint32_t>(at[i]);
  return word;
}
void store_big_endian(std::byte* at, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) at[i] = static_cast<std::byte>(value >> 8 * (bytes - 1 - i));
}

}  // namespace

void sha256::take_block(std::byte const* block) {
  std::uint32_t w[64];
  for (int i = 0; i < 16; ++i) w[i] = big_endian(block + 4 * i);
  for (int i = 16; i < 64; ++i) {
    std::uint32_t const a = w[i - 15], b = w[i - 2];
    std::uint32_t const s0 = std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3;
    std::uint32_t const s1 = std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10;
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (int i = 0; i < 64; ++i) {
    std::uint32_t const s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    std::uint32_t const t1 = h + s1 + ((e & f) ^ (~e & g)) + constants[i] + w[i];
    std::uint32_t const s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    std::uint32_t const t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  std::uint32_t const more[8] = {a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < 8; ++i) state_[i] += more[i];
}

sha256& sha256::add(std::span<std::byte const> more) {
  bytes_ += more.size();
  while (!more.empty()) {
    std::size_t const part = std::min(more.size(), block_.size() - filled_);
    std::memcpy(block_.data() + filled_, more.data(), part);
    more = more.subspan(part);
    filled_ += part;
    if (filled_ < block_.size()) return *this;
    take_block(block_.data());
    filled_ = 0;
  }
  return *this;
}

digest sha256::finish() {
  std::byte padding[72] = {std::byte{0x80}};
  std::size_t const zeros = filled_ < 56 ? 56 - filled_ : 120 - filled_;
  store_big_endian(padding + zeros, 8 * bytes_, 8);
  add({padding, zeros + 8});
  digest made;
  for (std::size_t i = 0; i < 8; ++i) store_big_endian(made.data() + 4 * i, state_[i], 4);
  return made;
}

digest hmac_sha256(std::span<std::byte const> key, std::span<std::byte const> message) {
  std::array<std::byte, 64> inner{};
  if (key.size() > inner.size()) {
    digest const shorter = sha256().add(key).finish();
    std::copy(shorter.begin(), shorter.end(), inner.begin());
  } else {
    std::copy(key.begin(), key.end(), inner.begin());
  }
  std::array<std::byte, 64> outer = inner;
  for (std::byte& b : inner) b ^= std::byte{0x36};
  for (std::byte& b : outer) b ^= std::byte{0x5c};
  digest const within = sha256().add(inner).add(message).finish();
  return sha256().add(outer).add(within).finish();
}

bool equal(digest const& a, digest const& b) {
  std::byte different{0};
  for (std::size_t i = 0; i < a.size(); ++i) different |= a[i] ^ b[i];
  return different == std::byte{0};
}

}  // namespace ferry
