// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The experts of a CPU rank as a migration moves them.
#pragma once

#include <ferry/balance/expert_store.hpp>
#include <ferry/deepseek/moe_layer.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

namespace ferry::deepseek {

/// An expert's bytes, the same on every device: gate and up, then down, as numbers of the compute
/// type, then a word that says whether inputs are rounded to fp8.
struct expert_form {
  std::int64_t hidden = 0;
  std::int64_t width = 0;
  dtype compute = dtype::f32;

  std::size_t up_bytes() const {
    return static_cast<std::size_t>(2 * width * hidden) * bytes_of(compute);
  }
  std::size_t down_bytes() const {
    return static_cast<std::size_t>(width * hidden) * bytes_of(compute);
  }
  std::size_t flag_offset() const { return up_bytes() + down_bytes(); }
  std::size_t bytes() const { return flag_offset() + sizeof(std::uint64_t); }
};

/// Weights that are packed for products: unpacked to be sent, packed where they arrive.
class host_experts : public expert_store {
 public:
  /// `layers` are those that have experts.
  host_experts(std::vector<moe_layer*> layers, expert_form const& form, int spare_slots);

  std::size_t expert_bytes() const override { return form_.bytes(); }
  int spare_slots() const override { return static_cast<int>(staged_.size()); }
  result<void> read(own_slot from, std::size_t offset, std::span<std::byte> to) override;
  result<void> stage(int spare, own_slot where, std::span<std::byte const> weights) override;
  result<void> read_staged(int spare, std::size_t offset, std::span<std::byte> to) override;
  result<void> swap() override;
  void discard() override;

 private:
  struct staged {
    own_slot where;
    std::optional<mlp> expert;
  };
  result<mlp*> at(own_slot s);
  result<void> unpack(mlp const& from);
  result<void> copy(std::size_t offset, std::span<std::byte> to) const;

  std::vector<moe_layer*> layers_;
  expert_form form_;
  std::vector<staged> staged_;
  std::vector<std::byte> unpacked_;        ///< one expert
  std::optional<own_slot> unpacked_slot_;  ///< whose, or
  std::optional<int> unpacked_spare_;
};

}  // namespace ferry::deepseek
