// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Where the contract suites' kernels run: teams of the CPU, emulated lanes, or a GPU.
#pragma once

#include <ferry/exec/cpu/cpu_executor.hpp>
#include <ferry/exec/cpu/cpu_strip.hpp>
#include <ferry/exec/cpu/cpu_team.hpp>
#include <ferry/exec/device.hpp>
#include <ferry/exec/emulated/lane_launch.hpp>
#include <ferry/exec/queue.hpp>
#include <ferry/transport/mapped.hpp>

#include "contract/contract_launches.hpp"
#include "exec/current_device.hpp"
#include "exec/queue_stream.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace ferry::test {

/// The devices that a suite is run on: the chosen one (test_device.hpp) or, without a choice, both
/// widths of emulated ones.
std::vector<std::string> contract_devices();

/// An array of a device's memory. The host's copies go through memory that the device reaches: any
/// other copy may wait until the device is idle.
template <class T>
class contract_array {
 public:
  contract_array(device const& where, std::size_t size, memory_kind kind = memory_kind::local)
      : queue_(queue::on(where).value()),
        memory_(where.allocate(kind, bytes_of(size)).value()),
        staging_(where.allocate(memory_kind::pinned, bytes_of(size)).value()),
        size_(size) {}
  contract_array(device const& where, std::vector<T> const& values)
      : contract_array(where, values.size()) {
    write(values);
  }

  T* data() const { return reinterpret_cast<T*>(memory_.data()); }
  std::size_t size() const { return size_; }

  std::vector<T> read() {
    transfer(staging_.data(), memory_.data());
    std::vector<T> values(size_);
    if (size_ > 0) std::memcpy(values.data(), staging_.data(), size_ * sizeof(T));
    return values;
  }
  void write(std::vector<T> const& values) {
    if (size_ > 0) std::memcpy(staging_.data(), values.data(), size_ * sizeof(T));
    transfer(memory_.data(), staging_.data());
  }

 private:
  static std::size_t bytes_of(std::size_t size) {
    return std::max<std::size_t>(1, size) * sizeof(T);
  }
  void transfer(void* to, void const* from) {
    queue_.copy(to, from, size_ * sizeof(T)).value();
    queue_.wait(std::chrono::seconds(60)).value();
  }

  queue queue_;
  device_memory memory_, staging_;
  std::size_t size_;
};

/// One rank of a suite: a device, what its waits say, and the windows that its kernels reach.
class contract_place {
 public:
  explicit contract_place(device const& where, std::chrono::milliseconds timeout = longest);

  device const& where() const { return where_; }
  bool on_cpu() const { return where_.kind() == device_kind::cpu; }
  int lanes() const { return where_.lanes(); }
  /// A queue for launches of that many blocks.
  queue make_queue(int blocks) const;
  int strips(lane_grid grid) const {
    return on_cpu() ? 1 : grid.blocks * grid.teams * (lanes() / strip_lanes);
  }
  std::byte* scratch() const { return scratch_.data(); }
  /// CPU only: who sleeps is counted at this offset of the rank's window, as in those of its peers.
  void sleep_at(std::byte* window, std::size_t offset);

  /// Puts a kernel on the queue. On the CPU a block is one team, and the queue has as many.
  template <class Kernel>
  result<void> run(queue& q, lane_grid grid, Kernel const& kernel) {
    if (on_cpu()) return run_on_cpu(q, kernel);
    FERRY_TRY(current_device const chosen, current_device::make(where_));
    contract_launch_of<Kernel> const& with = *table_;
    gpu_launch const launch{.stream = q.stream(),
                            .blocks = grid.blocks,
                            .teams = grid.teams,
                            .peers = peers,
                            .waits = waits(),
                            .scratch = scratch_.data(),
                            .scratch_stride = scratch_stride};
    return checked(with.launch(launch, kernel));
  }

  /// What the waits of its kernels have said.
  status_record status() { return status_.read().front(); }
  bool told() { return told_.read().front() != 0; }
  /// Makes all waits of its kernels leave.
  void give_up() { failed_.write({1}); }

  /// The windows of all ranks, this one's among them; what a suite does not set is never reached.
  peer_table peers;
  std::size_t asleep_offset = 0;  ///< CPU only: of the counters of sleepers in a window

  static constexpr std::chrono::milliseconds longest{60'000};
  static constexpr std::size_t scratch_stride = 256;
  static constexpr int most_teams = 2048;

 private:
  template <class Kernel>
  result<void> run_on_cpu(queue& q, Kernel const& kernel) {
    return q.on_host().stream.put([this, executor = &q.executor(), kernel]() -> result<void> {
      if constexpr (std::is_same_v<Kernel, check_strips>) {
        kernel(cpu_strip<void, 4>{});
      } else {
        executor->run([&](int index, int teams) {
          std::byte* const own = scratch_.data() + static_cast<std::size_t>(index) * scratch_stride;
          cpu_team<void> const t(index, teams, *cpu_waits_, own, own + scratch_stride / 2);
          kernel(t, mapped_delivery{peers.flags, peers.rank, asleep_offset});
          t.drain();
        });
      }
      return {};
    });
  }
  gpu_waits waits() const;
  result<void> checked(int status) const;

  device where_;
  std::chrono::milliseconds timeout_;
  contract_table const* table_ = nullptr;
  device_memory scratch_;
  contract_array<status_record> status_;
  contract_array<std::uint32_t> failed_, told_, asleep_;
  std::unique_ptr<waiter> cpu_waits_;
};

}  // namespace ferry::test
