// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// A reliable connected queue pair to one peer.
#pragma once

#include <ferry/base/result.hpp>

#include "transport/peer_address.hpp"
#include "transport/verbs/verbs_device.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

namespace ferry {

/// Entries are numbered without end; what an entry sends lies in its own place of the staging
/// memory, which is free when the entry is. All members but the mutex itself are guarded by it.
class verbs_queue {
 public:
  verbs_queue() = default;
  ~verbs_queue();
  verbs_queue(verbs_queue const&) = delete;
  verbs_queue& operator=(verbs_queue const&) = delete;

  /// `staging` holds put_bytes for each entry, and for a fetch, and is registered as `staging_key`.
  result<void> make(verbs_device& device, verbs_options const& options,
                    std::span<std::byte> staging, std::uint32_t staging_key);
  /// What the peer needs to connect to it.
  std::vector<std::byte> endpoint() const;
  /// Connects, also anew. What was posted before is forgotten.
  result<void> connect(std::span<std::byte const> endpoint, peer_window const& window);

  bool has_room(std::uint32_t count) const { return posted_ - done_ + count <= entries_; }
  result<void> put(std::uint64_t to, std::byte const* from, std::size_t bytes);
  result<void> signal(std::uint64_t to, std::uint64_t value, bool covers);
  /// Reads a word of the peer's window: its answer comes when all earlier puts are in its memory.
  result<void> settle();
  bool settled() const { return done_ >= settling_; }
  /// Asks for up to put_bytes of the peer's memory; they lie at fetched() once done() is past the
  /// entry that was posted. One at a time.
  result<void> fetch(std::uint64_t from, std::size_t bytes);
  std::byte const* fetched() const { return staging_.data() + entries_ * put_bytes_; }
  /// Whether the queue was made: this rank has chosen to reach that peer.
  bool made() const { return pair_ != nullptr; }
  /// Reads completions.
  /// Errors   unreachable the peer does not answer; transport anything else
  result<void> poll(int rank);

  std::mutex mutex;
  std::mutex fetching;  ///< held from a fetch until its bytes are taken; before `mutex`
  peer_window window{};
  bool connected = false;
  std::uint64_t posted() const { return posted_; }
  std::uint64_t done() const { return done_; }

 private:
  std::byte* place() const { return staging_.data() + posted_ % entries_ * put_bytes_; }
  ibv_sge piece_of(std::byte* at, std::uint32_t bytes) const;
  result<void> forget_completions();
  result<void> post(ibv_send_wr& work);
  result<void> nudge();

  verbs_device* device_ = nullptr;
  verbs_options options_;
  std::span<std::byte> staging_;
  std::uint32_t staging_key_ = 0;
  std::uint64_t entries_ = 0;
  std::size_t put_bytes_ = 0;
  ibv_cq* completions_ = nullptr;
  ibv_qp* pair_ = nullptr;
  std::uint32_t inline_bytes_ = 0;
  bool adds_ = false;  ///< both ends have atomics
  std::uint64_t posted_ = 0, done_ = 0;
  std::uint64_t settling_ = 0;  ///< all before it belong to the last settle
  std::unordered_map<std::uint64_t, std::uint64_t> words_;  ///< last value of each signal's word
  std::optional<error> failure_;
  std::chrono::steady_clock::time_point moved_{};  ///< when an entry was last seen to end
};

}  // namespace ferry
