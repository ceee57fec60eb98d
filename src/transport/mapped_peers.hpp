// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The windows behind a transport whose peers are mapped in this process.
#pragma once

#include <ferry/transport/mapped_window.hpp>
#include <ferry/transport/transport.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ferry {

/// Checks regions against the windows they name, and stores words in them.
class mapped_peers {
 public:
  mapped_peers(int rank, std::vector<mapped_window> windows);

  /// A mapped window needs no address; what is exposed is its size, and peers compare it.
  result<std::vector<std::byte>> expose(std::span<std::byte> window) const;
  result<void> connect(int rank, std::span<std::byte const> address);

  result<void> check(remote_region const& to) const;
  result<void> check_word(remote_region const& to) const;
  std::byte* at(remote_region const& to) const {
    return windows_[static_cast<std::size_t>(to.rank)].bytes.data() + to.offset;
  }
  /// Releases this thread's earlier stores, and wakes who sleeps on the word.
  void store_word(remote_region const& to, std::uint64_t value) const;
  int num_ranks() const { return static_cast<int>(windows_.size()); }

 private:
  int rank_;
  std::vector<mapped_window> windows_;
};

}  // namespace ferry
