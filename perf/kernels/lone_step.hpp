// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// A step of a rank that is alone, kernel by kernel: nobody is waited for, so only the kernels'
/// own work is left.
#pragma once

#include <ferry/exchange.hpp>

#include <cstdint>
#include <memory>
#include <vector>

namespace ferry::perf {

struct lone_shape {
  int tokens = 128;
  int hidden = 7168;
  int topk = 8;
  int experts = 64;
  ferry::wire wire = wire::bf16;
  ferry::layout layout = layout::grouped;
  ferry::reduction reduction = reduction::per_rank;
};

/// Tokens are bf16 (opaque: bytes), and so is what the experts make of them. Calls come in the
/// order of the four; each throws what ferry reports.
class lone_step {
 public:
  explicit lone_step(lone_shape const& shape);

  void send();
  void receive();
  void give_back();
  /// The same from rows that are summed already.
  void give_back_sums();
  void gather();

  /// Bytes of a row as the caller has it, in flight, and home.
  std::size_t given_bytes() const { return given_; }
  std::size_t sent_bytes() const { return sent_; }
  std::size_t home_bytes() const { return home_; }
  std::int64_t positions() const { return positions_; }
  lone_shape const& shape() const { return shape_; }

 private:
  lone_shape shape_;
  std::size_t given_, sent_, home_;
  group ranks_;
  std::unique_ptr<exchange> ep_;
  queue queue_;
  std::vector<std::byte> tokens_, scales_, made_, output_;
  std::vector<std::int32_t> choices_;
  std::vector<float> weights_;
  std::int64_t positions_ = 0;
};

}  // namespace ferry::perf
