// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// What is under way between this rank and one peer.
#pragma once

#include <ferry/base/result.hpp>
#include <ferry/transport/libfabric.hpp>

#include "transport/libfabric/fabric_calls.hpp"
#include "transport/libfabric/signal_order.hpp"
#include "transport/peer_address.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace ferry {

/// One operation as the provider knows it: by the address of its first member.
struct fabric_operation {
  enum class kind : std::uint8_t { put, signal, fetch, receive };
  fi_context2 of_provider;
  kind what;
  bool held;      ///< a signal that has not been sent yet
  bool complete;  ///< what it is made of may be used again
  int rank;
};

/// A ring of operations, numbered without end; what operation n sends lies in place n % entries of
/// the staging memory, which is free once every operation up to n is complete. Guarded by the
/// transport.
class fabric_peer {
 public:
  void make(int rank, int of_rank, fabric_calls& endpoint, libfabric_options const& options,
            local_memory const& staging);
  /// Connects, also anew: signals that were held are dropped, what is under way goes on.
  result<void> connect(std::span<std::byte const> address);

  /// Whether this rank has chosen to reach that peer.
  bool made() const { return endpoint_ != nullptr; }
  bool connected() const { return to_ != FI_ADDR_NOTAVAIL; }
  bool has_room() const { return posted_ - done_ < ring_.size(); }
  std::uint64_t posted() const { return posted_; }
  std::uint64_t done() const { return done_; }
  void settle() { settling_ = posted_; }
  bool settled() const { return done_ >= settling_; }
  bool under_way() const { return done_ < posted_; }
  /// Whether the provider has refused an operation that may be possible by now.
  bool refused() const { return refused_ && !failure_; }
  peer_window const& window() const { return window_; }
  std::optional<error> const& failure() const { return failure_; }

  /// False when the provider wants it to be tried again.
  bool put(std::size_t offset, std::byte const* from, std::size_t bytes);
  void signal(std::size_t offset, std::uint64_t value, bool covers);
  bool fetch(std::size_t offset, std::byte* into, std::size_t bytes, local_memory const& memory,
             fabric_operation& as);
  /// After completions: sends the signals whose puts are all delivered.
  void advance();
  /// An operation has come to its end, well or not.
  void note_completion() { refused_ = false; }
  void fail_with(ssize_t code, std::string const& text);

  signal_order incoming;  ///< of its signals to this rank

 private:
  std::byte* place(std::uint64_t number) const {
    return staging_.bytes.data() + number % ring_.size() * put_bytes_;
  }
  fabric_operation& at(std::uint64_t number) { return ring_[number % ring_.size()]; }
  /// Whether the provider took it; else it may be that it wants to be asked again.
  bool accepted(ssize_t code);
  bool send(std::uint64_t number);
  fabric_operation& next(fabric_operation::kind what);

  int rank_ = -1, peer_ = -1;
  fabric_calls* endpoint_ = nullptr;
  local_memory staging_{};
  std::size_t put_bytes_ = 0;
  std::vector<fabric_operation> ring_;
  fi_addr_t to_ = FI_ADDR_NOTAVAIL;
  peer_window window_{};
  exposed_memory there_{};
  std::uint64_t posted_ = 0;
  std::uint64_t done_ = 0;      ///< all before it are complete
  std::uint64_t covered_ = 0;   ///< all puts before it are delivered, all signals sent
  std::uint64_t settling_ = 0;  ///< what the last settle waits for
  std::uint64_t stream_ = 0, sent_ = 0;
  std::chrono::milliseconds connect_timeout_{};
  std::chrono::steady_clock::time_point refused_since_{};
  bool refused_ = false;
  std::optional<error> failure_;
};

/// What a rank tells its peers of its endpoint and window, and how they read it.
std::vector<std::byte> pack_endpoint(exposed_memory const& window,
                                     std::span<std::byte const> address);

}  // namespace ferry
