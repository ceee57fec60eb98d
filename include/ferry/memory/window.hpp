// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// A window: memory of one rank that its peers can write.
#pragma once

#include <ferry/base/result.hpp>

#include <cstddef>
#include <memory>
#include <span>

namespace ferry {

/// Zeroed, page-aligned memory, owned by this process (plain, memfd) or mapped from a peer.
/// Lifetime  unmapped and closed when the last copy goes; nothing of it has a name in any file
///           system, so nothing is left behind when the process is killed
class window {
 public:
  window() = default;

  /// Memory that threads of this process can reach through the pointer itself.
  /// Errors   invalid_argument 0 bytes; out_of_memory
  static result<window> plain(std::size_t bytes);

  /// Memory behind an anonymous descriptor (memfd, sealed against resizing), which other processes
  /// can map once they hold the descriptor.
  /// Errors   invalid_argument 0 bytes; out_of_memory, unsupported (no memfd), io
  static result<window> shareable(std::size_t bytes);

  /// Maps a peer's window from a descriptor received from it, which stays the caller's to close.
  /// Errors   invalid_argument 0 bytes; malformed_input the descriptor holds fewer than `bytes`, or
  ///          may still shrink, or is no memfd; out_of_memory, io
  static result<window> map(int descriptor, std::size_t bytes);

  std::byte* data() const { return memory_ ? memory_->data : nullptr; }
  std::size_t size() const { return memory_ ? memory_->bytes : 0; }
  std::span<std::byte> bytes() const { return {data(), size()}; }
  /// The memfd, or -1 for plain memory.
  int descriptor() const { return memory_ ? memory_->descriptor : -1; }

 private:
  struct memory {
    memory(std::byte* at, std::size_t size, int fd) : data(at), bytes(size), descriptor(fd) {}
    ~memory();
    memory(memory const&) = delete;
    std::byte* data;
    std::size_t bytes;
    int descriptor;
  };
  std::shared_ptr<memory> memory_;
};

}  // namespace ferry
