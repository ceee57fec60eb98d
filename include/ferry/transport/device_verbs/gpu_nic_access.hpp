// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// How a lane of a GPU reaches a NIC's queues: over the instructions of one vendor's device.
#pragma once

#include <ferry/transport/device_verbs/nic_access.hpp>

#include <cstdint>

namespace ferry::device_verbs {

/// `Device` gives the instructions (exec/gpu/<vendor>/device.hpp). Queues, records and registers
/// are memory that the device reaches and does not cache beyond a release: pinned host memory, or
/// its own where the NIC reads it.
template <class Device>
struct gpu_nic_access {
  template <class T>
  FERRY_FN T load(T const* at) const {
    T const value = Device::load_word(at);
    Device::acquire();
    return value;
  }
  template <class T>
  FERRY_FN void store(T* at, T value) const {
    Device::release_to_bus();
    Device::store_word(at, value);
  }
  FERRY_FN std::uint32_t fetch_add(std::uint32_t* at, std::uint32_t value) const {
    Device::release();
    std::uint32_t const before = Device::add(at, value);
    Device::acquire();
    return before;
  }
  FERRY_FN void fence() const { Device::release_to_bus(); }
  FERRY_FN void ring(std::uint64_t* at, std::uint64_t value) const { Device::ring(at, value); }
  FERRY_FN void pause() const { Device::pause(); }
};

/// Patience of a lane, in ticks of its device's clock, counted from the first look.
template <class Device>
class gpu_patience {
 public:
  FERRY_FN explicit gpu_patience(std::uint64_t ticks) : ticks_(ticks) {}
  FERRY_FN bool left() {
    std::uint64_t const now = Device::clock();
    if (start_ == 0) start_ = now;
    return now - start_ < ticks_;
  }

 private:
  std::uint64_t ticks_;
  std::uint64_t start_ = 0;
};

}  // namespace ferry::device_verbs
