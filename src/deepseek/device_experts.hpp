// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The experts of a rank on a device as a migration moves them.
#pragma once

#include <ferry/balance/expert_store.hpp>
#include <ferry/exec/queue.hpp>

#include "deepseek/device_layers.hpp"
#include "deepseek/host_experts.hpp"

#include <chrono>
#include <memory>
#include <vector>

namespace ferry::deepseek {

/// Weights in device memory, with spare ones beside them. Copies run on a queue of their own, in
/// parts through memory that the device reaches: a copy to any other memory of the host may wait
/// for kernels which wait for this rank.
class device_experts : public expert_store {
 public:
  /// `layers` are those that have experts. Allocates the spare slots.
  /// Errors   out_of_memory, device
  static result<std::unique_ptr<device_experts>> make(device const& where,
                                                      std::vector<device_moe const*> layers,
                                                      expert_form const& form, int spare_slots,
                                                      std::chrono::milliseconds timeout);

  std::size_t expert_bytes() const override { return form_.bytes(); }
  int spare_slots() const override { return static_cast<int>(staged_.size()); }
  result<void> read(own_slot from, std::size_t offset, std::span<std::byte> to) override;
  result<void> stage(int spare, own_slot where, std::span<std::byte const> weights) override;
  result<void> read_staged(int spare, std::size_t offset, std::span<std::byte> to) override;
  result<void> swap() override;
  void discard() override;

 private:
  struct staged {
    bool used = false;
    own_slot where;
  };
  /// Where an expert's bytes lie: up, down, and the word of the host.
  struct place {
    std::byte* up = nullptr;
    std::byte* down = nullptr;
    std::uint64_t flag = 0;
  };

  device_experts(queue copies, std::vector<device_moe const*> layers, expert_form const& form,
                 int spare_slots, std::chrono::milliseconds timeout)
      : copies_(std::move(copies)),
        layers_(std::move(layers)),
        form_(form),
        staged_(static_cast<std::size_t>(spare_slots)),
        timeout_(timeout) {}
  result<place> at(own_slot s) const;
  place spare(int index) const;
  result<void> fetch(place const& from, std::size_t offset, std::span<std::byte> to);
  result<void> transfer(void* to, void const* from, std::size_t bytes);

  queue copies_;
  std::vector<device_moe const*> layers_;
  expert_form form_;
  std::vector<staged> staged_;
  std::chrono::milliseconds timeout_;
  device_memory spares_;  ///< [spare slots] of up and down
  device_memory bounce_;  ///< of the host
};

}  // namespace ferry::deepseek
