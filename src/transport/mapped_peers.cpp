// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "transport/mapped_peers.hpp"

#include "base/fail.hpp"

#include <ferry/exec/cpu/waiter.hpp>

#include <cstring>

namespace ferry {

mapped_peers::mapped_peers(int rank, std::vector<mapped_window> windows)
    : rank_(rank), windows_(std::move(windows)) {}

result<std::vector<std::byte>> mapped_peers::expose(std::span<std::byte> window) const {
  std::uint64_t const bytes = window.size();
  std::vector<std::byte> address(sizeof bytes);
  std::memcpy(address.data(), &bytes, sizeof bytes);
  return address;
}

result<void> mapped_peers::connect(int rank, std::span<std::byte const> address) {
  FERRY_CHECK(check({rank, 0, 0}));
  std::uint64_t bytes = 0;
  if (address.size() != sizeof bytes)
    return fail(error_code::malformed_input, "rank {}'s address has {} bytes instead of {}", rank,
                address.size(), sizeof bytes);
  std::memcpy(&bytes, address.data(), sizeof bytes);
  std::size_t const mapped = windows_[static_cast<std::size_t>(rank)].bytes.size();
  if (bytes != mapped)
    return fail(error_code::malformed_input,
                "rank {} exposes a window of {} bytes, but {} are mapped here", rank, bytes,
                mapped);
  return {};
}

result<void> mapped_peers::check(remote_region const& to) const {
  if (to.rank < 0 || to.rank >= num_ranks())
    return fail(error_code::invalid_argument, "rank {} is not one of 0..{}", to.rank,
                num_ranks() - 1);
  std::size_t const size = windows_[static_cast<std::size_t>(to.rank)].bytes.size();
  if (to.bytes > size || to.offset > size - to.bytes)
    return fail(error_code::invalid_argument, "bytes {} to {} of rank {}'s window, which has {}",
                to.offset, to.offset + to.bytes, to.rank, size);
  return {};
}

result<void> mapped_peers::check_word(remote_region const& to) const {
  FERRY_CHECK(check(to));
  if (to.bytes != 8 || to.offset % 8 != 0)
    return fail(error_code::invalid_argument,
                "a signal to {} bytes at offset {}; a word is 8 bytes at a multiple of 8", to.bytes,
                to.offset);
  return {};
}

void mapped_peers::store_word(remote_region const& to, std::uint64_t value) const {
  mapped_window const& window = windows_[static_cast<std::size_t>(to.rank)];
  auto* const word = reinterpret_cast<std::uint64_t*>(at(to));
  if (window.asleep_offset == mapped_window::no_sleepers) {
    std::atomic_ref(*word).store(value, std::memory_order_release);
    return;
  }
  auto* const asleep = reinterpret_cast<std::uint32_t*>(window.bytes.data() + window.asleep_offset);
  store_and_wake(word, value, asleep + rank_);
}

}  // namespace ferry
