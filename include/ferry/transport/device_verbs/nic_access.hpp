// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// How queue memory and device registers are reached, and in which order the NIC sees it.
#pragma once

#include <ferry/base/platform.hpp>

#include <atomic>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <thread>

namespace ferry::device_verbs {

/// Contract of an access. Each kind of device has its own; on a GPU all orders are of system scope.
///   load(p)          acquires a word that the NIC or another team stores
///   store(p, v)      releases this thread's earlier stores together with the word
///   fetch_add(p, v)  acquires and releases; counters of this rank only
///   fence()          everything stored before, to whatever kind of memory, reaches the NIC before
///                    anything stored after
///   ring(p, v)       one 8-byte store to a device register, never split or repeated
///   pause()          a waiting thread's turn passes
template <class Access>
concept nic_access = requires(Access const& a, std::uint32_t* word, std::uint64_t* wide) {
  { a.load(word) } -> std::same_as<std::uint32_t>;
  { a.load(wide) } -> std::same_as<std::uint64_t>;
  a.store(word, std::uint32_t{1});
  a.store(wide, std::uint64_t{1});
  { a.fetch_add(word, std::uint32_t{1}) } -> std::same_as<std::uint32_t>;
  a.fence();
  a.ring(wide, std::uint64_t{1});
  a.pause();
};

/// A thread of an x86-64 host.
struct cpu_nic_access {
  template <class T>
  T load(T const* at) const {
    return std::atomic_ref(*const_cast<T*>(at)).load(std::memory_order_acquire);
  }
  template <class T>
  void store(T* at, T value) const {
    std::atomic_ref(*at).store(value, std::memory_order_release);
  }
  std::uint32_t fetch_add(std::uint32_t* at, std::uint32_t value) const {
    return std::atomic_ref(*at).fetch_add(value, std::memory_order_acq_rel);
  }
  // Ordinary stores keep their order here; those that are being combined on their way to a device
  // do not.
  void fence() const { __builtin_ia32_sfence(); }
  // Not an exchange: that would read the register. A register's page may combine stores, and keep
  // this one back until it is told not to.
  void ring(std::uint64_t* at, std::uint64_t value) const {
    std::atomic_ref(*at).store(value, std::memory_order_release);
    __builtin_ia32_sfence();
  }
  void pause() const { FERRY_PAUSE(); }
};
static_assert(nic_access<cpu_nic_access>);

/// How long a wait for the own device's other teams may last. `left()` is asked at every turn.
template <class Patience>
concept patience = requires(Patience& p) {
  { p.left() } -> std::same_as<bool>;
};

/// Patience of a host thread, counted from the first look. Gives its core away now and then:
/// whoever is waited for may need it.
class host_patience {
 public:
  host_patience() = default;
  explicit host_patience(std::chrono::nanoseconds most) : most_(most) {}
  bool left() {
    if (++turns_ % spin_turns != 0) return true;
    auto const now = std::chrono::steady_clock::now();
    if (turns_ == spin_turns) end_ = now + most_;
    std::this_thread::yield();
    return now < end_;
  }

 private:
  static constexpr std::uint64_t spin_turns = 32;
  std::chrono::nanoseconds most_{0};
  std::chrono::steady_clock::time_point end_;
  std::uint64_t turns_ = 0;
};

}  // namespace ferry::device_verbs
