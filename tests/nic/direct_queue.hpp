// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// One queue of a vendor, an emulated NIC behind it, and memory on both sides.
#pragma once

#include <ferry/memory/window.hpp>
#include <ferry/transport/device_verbs/send_queue.hpp>

#include "nic/emulated_nic.hpp"

#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace ferry::test {

inline constexpr nic_vendor all_vendors[] = {nic_vendor::mlx5, nic_vendor::bnxt, nic_vendor::ionic};

template <class Format>
struct direct_queue {
  static constexpr std::uint32_t entries = 64;

  std::shared_ptr<registered_memory> memory = std::make_shared<registered_memory>();
  window local = window::plain(1 << 14).value(), remote = window::plain(1 << 16).value();
  emulated_nic nic;
  device_verbs::queue_counters counters{};
  device_verbs::send_queue<Format, device_verbs::cpu_nic_access> queue{};
  std::uint32_t local_key, remote_key;

  direct_queue(nic_vendor vendor, nic_faults f, bool with_thread)
      : nic(1, vendor, memory, f, with_thread) {
    queue.pair = nic.make_queue(entries).value();
    counters = device_verbs::start_counters<Format>(queue.pair);
    queue.counters = &counters;
    local_key = nic.register_memory(local.bytes(), false).value().local;
    // The peer is NIC 2, whose memory is here as well.
    remote_key = memory->add({.owner = 2,
                              .address = reinterpret_cast<std::uint64_t>(remote.data()),
                              .bytes = remote.size(),
                              .mapped = remote.data(),
                              .by_peers = true});
    std::uint32_t const endpoint[2] = {2, 0x1234};
    nic.connect(queue.pair, std::as_bytes(std::span(endpoint))).value();
  }

  std::uint32_t most() const { return Format::most_outstanding(entries); }

  void start_at(std::uint32_t index, std::uint32_t packet) {
    nic.set_start(queue.pair, index, packet);
    counters.reserved = counters.published = counters.completed = counters.consumed = index;
    counters.packet = packet;
  }

  work write_of(std::size_t from, std::size_t to, std::uint32_t bytes) const {
    return {.what = verb::write,
            .remote_key = remote_key,
            .remote = reinterpret_cast<std::uint64_t>(remote.data()) + to,
            .local = reinterpret_cast<std::uint64_t>(local.data()) + from,
            .local_key = local_key,
            .bytes = bytes};
  }
  work word_of(std::size_t to, std::uint64_t value) const {
    work w = write_of(0, to, 0);
    w.what = verb::inline_word;
    w.word = value;
    return w;
  }
  work add_of(std::size_t to, std::uint64_t value) const {
    work w = word_of(to, value);
    w.what = verb::fetch_add;
    return w;
  }

  bool post(std::vector<work> const& all) {
    device_verbs::host_patience patience(std::chrono::seconds(10));
    return queue.post_alone(
        static_cast<std::uint32_t>(all.size()), [&](std::uint32_t i) { return all[i]; }, patience);
  }
  /// Lets a NIC without a thread do all it can, and reads its completions.
  void finish() {
    while (nic.turn()) {
    }
    queue.poll();
  }
  /// Waits for a NIC with a thread.
  void wait_idle() {
    auto const end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!queue.is_done(queue.access.load(&counters.reserved)) &&
           queue.status() == nic_status::ok && std::chrono::steady_clock::now() < end)
      if (queue.poll() == 0) std::this_thread::yield();
  }

  std::uint64_t remote_word(std::size_t at) const {
    return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(remote.data() + at))
        .load(std::memory_order_acquire);
  }
  std::uint64_t local_word(std::size_t at) const {
    std::uint64_t value;
    std::memcpy(&value, local.data() + at, 8);
    return value;
  }
  static std::vector<std::byte> pattern(std::size_t bytes) {
    std::vector<std::byte> made(bytes);
    for (std::size_t i = 0; i < bytes; ++i) made[i] = static_cast<std::byte>(i * 7 + i / 251 + 1);
    return made;
  }
};

}  // namespace ferry::test
