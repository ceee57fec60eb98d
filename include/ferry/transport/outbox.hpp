// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// What a rank sends over a network waits here: staged copies, posted through a transport.
#pragma once

#include <ferry/transport/transport.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace ferry {

/// A ring of staging memory in front of a transport. When it is full, or the transport says
/// try_again, the caller makes progress until there is room. Safe to use from several threads.
class outbox {
 public:
  outbox(std::unique_ptr<transport> net, int num_ranks, std::size_t staging_bytes,
         std::chrono::milliseconds timeout);

  /// Waits until what was posted is out, or the deadline: peers may still need a rank's last words.
  ~outbox();
  outbox(outbox const&) = delete;
  outbox& operator=(outbox const&) = delete;

  /// Copies `bytes` and puts them at `offset` in the window of `rank`. The first error stays in
  /// `first_error`; after it nothing is posted any more.
  void put(int rank, std::size_t offset, std::byte const* from, std::size_t bytes);
  void signal(int rank, std::size_t offset, std::uint64_t word, strength promise);

  /// The first error of any operation, also of those that completed later.
  std::optional<error> first_error();
  /// The same, but nothing when another thread is posting just now.
  std::optional<error> error_so_far();
  /// Nothing is posted any more (R9). What was posted and still waits does not go out either, but
  /// where peers may fetch: there the transport stays, so that they can read this rank's record.
  void give_up(error why);

  /// Reads from a peer's window, as transport::fetch; after an error too.
  result<void> fetch(int rank, std::size_t offset, std::span<std::byte> to,
                     std::chrono::milliseconds timeout);
  /// The peer that the first failed operation went to, or that took nothing any more, or -1.
  int failed_rank();

 private:
  std::byte* stage(std::byte const* from, std::size_t bytes);
  template <class Post>
  void post_until_accepted(int rank, Post const& operation);

  bool flush_all();
  std::optional<error> find_error();

  std::vector<std::byte> staging_;  // outlives the transport, which reads it
  std::unique_ptr<transport> net_;
  int num_ranks_;
  std::chrono::milliseconds timeout_;
  std::mutex mutex_;
  std::size_t used_ = 0;
  std::optional<error> error_;
  int stuck_ = -1;  ///< the peer for which room was waited for in vain
};

}  // namespace ferry
