// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// One rank's part of a case: its routing, and the memory that a caller of ferry would own.
#pragma once

#include "routing.hpp"

#include <ferry/exchange.hpp>
#include <ferry/memory/window.hpp>

#include <span>
#include <vector>

namespace ferry::bench {

/// What a caller gives to and takes from one step. Views into a workload's memory.
struct caller_rows {
  std::byte* tokens;   ///< [tokens, given bytes]
  std::byte* wire;     ///< [tokens, sent bytes]: the same rows in wire format
  std::byte* scales;   ///< [tokens, scale bytes]
  std::byte* results;  ///< expert rows: [positions, home bytes], or [ranks * tokens, home bytes]
  std::byte* output;   ///< [tokens, home bytes]
};

/// Payload that a step carries from rank to rank, and from ranks to themselves: rows and scales.
struct payload {
  std::uint64_t others = 0;
  std::uint64_t self = 0;
};

class workload {
 public:
  /// Errors   out_of_memory, naming the bytes
  static result<workload> make(bench_case const& c, routes r, int rank);

  bench_case const& of() const { return case_; }
  int rank() const { return rank_; }
  row_sizes const& size() const { return size_; }
  routes const& routing() const { return routes_; }
  places const& place() const { return places_; }
  /// Positions of each expert in the padded layout, else 0.
  std::int64_t per_expert() const { return per_expert_; }
  float const* weights() const { return weights_.data(); }  ///< [ranks, tokens, topk]

  /// So many sets of rows that going round them leaves nothing in the caches.
  int num_sets() const { return sets_; }
  caller_rows set(int iteration, int slot) const;

  dispatch_input input(int iteration, int slot) const;
  const_tensor results(int iteration, int slot) const;
  tensor output(int iteration, int slot) const;

  /// Position of choice k of a token here, or -1.
  std::int32_t position(int source, int token, int k) const {
    return places_
        .position[(static_cast<std::size_t>(source) * static_cast<std::size_t>(case_.tokens) +
                   static_cast<std::size_t>(token)) *
                      static_cast<std::size_t>(case_.topk) +
                  static_cast<std::size_t>(k)];
  }

  /// Payload of one step of all ranks together.
  payload sent() const;
  payload returned() const;

  /// Compares output rows with sums in double precision, on some columns of each token.
  /// Errors   internal naming who made it, the token and the column
  result<void> check_output(std::byte const* output, char const* who) const;

 private:
  caller_rows rows_of_set(std::int64_t index) const;
  void fill(caller_rows const& to) const;
  void fill_results(std::byte* to) const;

  bench_case case_;
  int rank_ = 0;
  row_sizes size_;
  routes routes_;
  places places_;
  std::int64_t per_expert_ = 0;
  std::int64_t result_rows_ = 0;
  std::vector<float> weights_;
  int sets_ = 1;
  std::size_t set_bytes_ = 0;
  std::size_t offsets_[5] = {};
  window memory_;
};

}  // namespace ferry::bench
