// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// What emulated NICs know of memory, and of each other's receive queues: the network between them.
#pragma once

#include <ferry/transport/mapped_window.hpp>

#include "nic/refusal.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace ferry::test {

/// Memory of some process that NICs may reach by a key.
struct region {
  std::uint32_t owner = 0;    ///< the NIC that it is registered with
  std::uint64_t address = 0;  ///< by which entries name it: its owner's
  std::size_t bytes = 0;
  std::byte* mapped = nullptr;  ///< where it lies in this process
  bool by_peers = false;
  /// Of the window, when words that arrive shall wake who sleeps on them (as a thread that watches
  /// the NIC would).
  std::byte* asleep = nullptr;
};

/// Keys and regions. One per process, or one per test.
class registered_memory {
 public:
  /// Keys say which NIC they are of, so two processes never give the same.
  std::uint32_t add(region r) {
    std::lock_guard lock(mutex_);
    std::uint32_t const key = r.owner << 16 | (next_ += 7);
    regions_[key] = r;
    return key;
  }
  void add_foreign(std::uint32_t key, region r) {
    std::lock_guard lock(mutex_);
    regions_[key] = r;
  }
  /// Where the words that tell of sleepers lie in the window at `window`.
  void set_asleep(std::byte const* window, std::byte* asleep) {
    std::lock_guard lock(mutex_);
    for (auto& [key, r] : regions_)
      if (r.mapped == window) r.asleep = asleep;
  }
  void forget(std::uint32_t owner) {
    std::lock_guard lock(mutex_);
    std::erase_if(regions_, [&](auto const& entry) { return entry.second.owner == owner; });
  }

  struct found {
    std::byte* at = nullptr;
    region where;
  };
  /// The own NIC's memory, or memory that `owner`'s peers may write.
  std::optional<found> find(std::uint32_t key, std::uint32_t owner, bool by_peers,
                            std::uint64_t address, std::size_t bytes, refusal& why) {
    std::lock_guard lock(mutex_);
    auto const it = regions_.find(key);
    bool const usable =
        it != regions_.end() && it->second.owner == owner && (it->second.by_peers || !by_peers);
    if (!usable) {
      why = by_peers ? refusal::wrong_remote_key : refusal::wrong_local_key;
      return {};
    }
    region const& r = it->second;
    std::uint64_t const offset = address - r.address;
    if (offset > r.bytes || bytes > r.bytes - offset) {
      why = by_peers ? refusal::outside_remote_memory : refusal::outside_local_memory;
      return {};
    }
    return found{r.mapped + offset, r};
  }

  /// Receives posted to a queue of a NIC, which writes with an immediate use up.
  void post_receives(std::uint32_t nic, std::uint32_t queue, int count) {
    std::lock_guard lock(mutex_);
    receivers_[{nic, queue}].free += count;
  }
  bool deliver(std::uint32_t nic, std::uint32_t queue, std::uint32_t immediate) {
    std::lock_guard lock(mutex_);
    receiver& r = receivers_[{nic, queue}];
    if (r.free == 0) return false;
    --r.free;
    r.immediates.push_back(immediate);
    return true;
  }
  std::vector<std::uint32_t> immediates(std::uint32_t nic, std::uint32_t queue) {
    std::lock_guard lock(mutex_);
    return receivers_[{nic, queue}].immediates;
  }

 private:
  struct receiver {
    int free = 0;
    std::vector<std::uint32_t> immediates;
  };
  std::mutex mutex_;
  std::uint32_t next_ = 0x100;
  std::map<std::uint32_t, region> regions_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, receiver> receivers_;
};

}  // namespace ferry::test
