// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// A NIC made of a thread: consumes send queues byte for byte, in any order that the standard
/// leaves open, and refuses what a NIC would refuse.
#pragma once

#include <ferry/transport/device_verbs/direct_nic.hpp>

#include "nic/queue_reader.hpp"
#include "nic/registered_memory.hpp"

#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

namespace ferry::test {

/// Chances are out of 1024.
struct nic_faults {
  std::uint64_t seed = 1;
  int reorder = 512;  ///< per turn: some other operation that may start goes first
  int delay = 0;      ///< per turn: the NIC pauses
  std::chrono::microseconds longest_delay{200};
  int late = 0;  ///< per completion: it waits for some turns more
  int fail = 0;  ///< per operation: it fails, and with it the queue
  nic_status failure = nic_status::remote_operation;
  int lose = 0;  ///< per write: it is lost without a word, never completes, nothing after it covers
};

/// One operation that was refused: what the emulator found wrong, where.
struct refused {
  refusal why = refusal::none;
  std::uint32_t queue = 0;
  std::uint32_t index = 0;
};

/// Counts of what a NIC did.
struct nic_counts {
  std::uint64_t doorbells = 0, entries = 0, completions = 0, out_of_order = 0;
};

class emulated_nic final : public device_verbs::direct_nic {
 public:
  /// A NIC without a thread does something only when `turn` is called.
  emulated_nic(std::uint32_t id, nic_vendor vendor, std::shared_ptr<registered_memory> memory,
               nic_faults faults, bool with_thread = true);
  ~emulated_nic() override;

  nic_vendor vendor() const override { return vendor_; }
  result<device_verbs::memory_keys> register_memory(std::span<std::byte> memory,
                                                    bool by_peers) override;
  result<queue_pair> make_queue(std::uint32_t num_entries) override;
  result<std::vector<std::byte>> endpoint_of(queue_pair const& queue) override;
  result<void> connect(queue_pair const& queue, std::span<std::byte const> endpoint) override;

  /// Makes a queue look as if it had carried so many entries and packets before. `index` is a
  /// multiple of twice its length, so that rounds come out as in a new one.
  void set_start(queue_pair const& queue, std::uint32_t index, std::uint32_t packet);

  /// Looks at all doorbells, carries out at most one operation, writes completions that are due.
  /// Returns whether anything happened.
  bool turn();

  std::vector<refused> refusals() const;
  nic_counts counts() const;
  std::uint32_t id() const { return id_; }

 private:
  struct operation {
    work what{};
    std::uint32_t index = 0;
    std::uint32_t opcode = 0;
    bool done = false;
    bool lost = false;
    nic_status status = nic_status::ok;
    int turns_left = 0;  ///< until its completion may be written
  };
  struct queue_state;

  void run();
  bool take_doorbell(queue_state& q);
  bool fetch(queue_state& q, std::uint32_t end);
  bool carry_out_one();
  bool may_start(queue_state const& q, std::size_t i) const;
  void carry_out(queue_state& q, operation& o);
  nic_status move(queue_state& q, operation const& o);
  bool complete(queue_state& q);
  bool write_completion(queue_state& q, ending const& e);
  void refuse(queue_state& q, refusal why, std::uint32_t index);
  bool happens(int chance) { return chance > 0 && static_cast<int>(random_() % 1024) < chance; }

  std::uint32_t id_;
  nic_vendor vendor_;
  std::shared_ptr<registered_memory> memory_;
  nic_faults faults_;
  std::minstd_rand random_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<queue_state>> queues_;
  std::vector<refused> refusals_;
  nic_counts counts_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace ferry::test
