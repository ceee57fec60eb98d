// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Direct transports over emulated NICs, for the suites that take any transport.
#pragma once

#include <ferry/transport/device_verbs/direct_transport.hpp>
#include <ferry/transport/mapped_window.hpp>

#include "nic/direct_queue.hpp"
#include "nic/emulated_nic.hpp"
#include "transport/peer_address.hpp"

#include <memory>
#include <vector>

namespace ferry::test {

/// The transport of a rank whose NIC knows the windows of all, and is connected to all. `nic`, if
/// asked for, is the emulator behind it, valid while the transport lives.
inline std::unique_ptr<transport> make_emulated(int rank, std::vector<mapped_window> const& windows,
                                                nic_vendor vendor, nic_faults faults,
                                                device_verbs::direct_options options,
                                                emulated_nic** nic = nullptr) {
  auto memory = std::make_shared<registered_memory>();
  faults.seed += static_cast<std::uint64_t>(rank);
  auto made =
      std::make_unique<emulated_nic>(static_cast<std::uint32_t>(rank) + 1, vendor, memory, faults);
  if (nic) *nic = made.get();
  auto const ranks = static_cast<int>(windows.size());
  auto net = device_verbs::make_direct_transport(rank, ranks, std::move(made), options).value();
  for (int r = 0; r < ranks; ++r) {
    mapped_window const& w = windows[static_cast<std::size_t>(r)];
    std::uint32_t const owner = static_cast<std::uint32_t>(r) + 1;
    auto const address = reinterpret_cast<std::uint64_t>(w.bytes.data());
    bool const wakes = w.asleep_offset != mapped_window::no_sleepers;
    std::uint32_t const key =
        memory->add({.owner = owner,
                     .address = address,
                     .bytes = w.bytes.size(),
                     .mapped = w.bytes.data(),
                     .by_peers = true,
                     .asleep = wakes ? w.bytes.data() + w.asleep_offset : nullptr});
    std::vector<std::vector<std::byte>> endpoints;
    for (int from = 0; from < ranks; ++from) {
      std::uint32_t const queue = 0x1234 + static_cast<std::uint32_t>(from);
      std::vector<std::byte> e(8);
      std::memcpy(e.data(), &owner, 4);
      std::memcpy(e.data() + 4, &queue, 4);
      endpoints.push_back(e);
    }
    net->connect(r, pack_address({address, w.bytes.size(), key}, endpoints)).value();
  }
  return net;
}

}  // namespace ferry::test
