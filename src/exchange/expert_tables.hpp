// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The memory behind an exchange's expert_map.
#pragma once

#include <ferry/exchange.hpp>
#include <ferry/exec/device.hpp>
#include <ferry/kernels/expert_map.hpp>
#include <ferry/kernels/shape.hpp>
#include <ferry/memory/buffer.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ferry {

class device_rank;

/// Tables, counters and samples of all layers, shared by the slots of an exchange.
class expert_tables {
 public:
  /// In every layer expert e is in slot e, and nothing is counted yet.
  /// `on` is null on the CPU.
  result<void> make(exchange_options const& options, exchange_shape const& shape,
                    device const& where, device_rank const* on);
  /// As the steps of a slot see them: each keeps samples of its own.
  expert_map view(int slot) const;

  /// Errors   invalid_argument a layer that does not exist or stands there twice, or a table that
  ///          is none, naming layer and expert: nothing was written; device
  result<void> write(std::span<expert_table const> tables);
  result<std::vector<std::uint64_t>> loads() const;
  /// Those of all slots' last steps, each step's once.
  result<std::vector<std::int32_t>> take_samples();

 private:
  result<void> check(std::span<expert_table const> tables) const;
  result<void> copy_in(void const* to, void const* from, std::size_t bytes);
  std::size_t samples_of_slot() const;

  device_rank const* on_ = nullptr;
  buffer memory_;            ///< on the CPU
  device_memory on_device_;  ///< elsewhere
  expert_map map_;
  exchange_shape shape_;
  int slots_ = 1;
};

}  // namespace ferry
