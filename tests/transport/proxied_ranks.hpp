// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Rank 0 with a proxy in front of some transport, and the windows of all.
#pragma once

#include <ferry/exec/cpu/cpu_team.hpp>
#include <ferry/memory/window.hpp>
#include <ferry/transport/mapped.hpp>
#include <ferry/transport/mapped_window.hpp>
#include <ferry/transport/proxy.hpp>
#include <ferry/transport/proxy_delivery.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

namespace ferry::test {

using make_net = std::function<std::unique_ptr<transport>(std::vector<mapped_window>)>;

struct proxied_ranks {
  using delivery_type =
      proxy_delivery<device_verbs::cpu_nic_access, mapped_delivery, device_verbs::host_patience>;

  static constexpr int num_ranks = 4;
  std::vector<window> windows;
  std::vector<std::byte*> table = std::vector<std::byte*>(num_ranks);
  window memory;
  std::unique_ptr<proxy> through;
  delivery_type net;

  explicit proxied_ranks(make_net const& make,
                         proxy_options o = {.num_requests = 16,
                                            .put_bytes = 256,
                                            .timeout = std::chrono::seconds(20)})
      : memory(window::plain(proxy::memory_bytes(o)).value()) {
    std::vector<mapped_window> reached;
    for (int r = 0; r < num_ranks; ++r) {
      windows.push_back(window::plain(1 << 15).value());
      reached.push_back({windows.back().bytes()});
    }
    table[0] = windows[0].data();
    through = proxy::start(make(std::move(reached)), num_ranks, memory.bytes(), o).value();
    net = {{table.data(), 0, 1 << 14}, through->ring(), device_verbs::host_patience(o.timeout), {}};
  }

  std::uint64_t word(std::size_t rank, std::size_t at) const {
    return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(windows[rank].data() + at))
        .load(std::memory_order_acquire);
  }
  bool arrives(std::size_t rank, std::size_t at, std::uint64_t value) const {
    auto const end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (word(rank, at) != value) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::yield();
    }
    return true;
  }
};

}  // namespace ferry::test
