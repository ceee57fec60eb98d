// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// A host thread that posts what kernels ask for through any transport.
#pragma once

#include <ferry/transport/proxy_ring.hpp>
#include <ferry/transport/transport.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

namespace ferry {

struct proxy_options {
  std::uint32_t num_requests = 256;  ///< a power of two of at least 4
  /// Longest row that travels in one request; no longer than the transport's longest put.
  std::uint32_t put_bytes = 8192;
  /// How long the transport may refuse a request, or not be done with one.
  std::chrono::milliseconds timeout{30000};
  /// How long the thread sleeps when it has found nothing to do for a while. A device cannot wake
  /// it.
  std::chrono::microseconds idle_sleep{50};
};

/// The thread and its ring. Safe to use from several threads.
class proxy {
 public:
  /// Memory that host and kernels both reach (pinned, for a GPU): for CPU teams any will do.
  static std::size_t memory_bytes(proxy_options const& o);

  /// Starts the thread. `memory` is zeroed, and aligned to 64 bytes.
  /// Lifetime `memory` outlives the proxy
  /// Errors   invalid_argument num_requests, put_bytes, or memory that is too small or not aligned
  static result<std::unique_ptr<proxy>> start(std::unique_ptr<transport> net, int num_ranks,
                                              std::span<std::byte> memory, proxy_options o);

  /// Waits until what was asked for before is out, or the timeout.
  ~proxy();
  proxy(proxy const&) = delete;
  proxy& operator=(proxy const&) = delete;

  proxy_ring const& ring() const { return ring_; }

  /// The first error of any request. After it the ring has failed: nothing goes out any more.
  std::optional<error> first_error();
  /// Ends the transport: nothing goes out any more, also what was asked for and still waits (R9).
  void give_up(error why);

 private:
  proxy(std::unique_ptr<transport> net, int num_ranks, std::span<std::byte> memory,
        proxy_options o);
  void run();
  bool post_next();
  result<post> post_once(proxy_request const& r, std::byte const* from);
  void post_until_accepted(proxy_request const& r, std::byte const* from);
  void free_places();
  void fail_with(error why);
  bool all_out();

  proxy_options options_;
  std::unique_ptr<transport> net_;
  proxy_ring ring_;
  device_verbs::cpu_nic_access access_;
  std::uint32_t posted_ = 0;     ///< requests posted so far; of the thread alone
  std::vector<bool> in_flight_;  ///< by rank: a put whose bytes may not be read yet
  std::mutex mutex_;             ///< of the transport and the error
  std::optional<error> error_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace ferry
