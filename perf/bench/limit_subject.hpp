// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The limit that ferry is held against: memcpy of every row, and nothing else.
#pragma once

#include "subject.hpp"

#include <ferry/group.hpp>

namespace ferry::bench {

/// Copies every row that ferry moves, to the same places, on all ranks at once, without waiting for
/// anybody. What ferry reads is read and what it writes is written:
///   sending    a token's row, as the caller has it (not quantised), to each of its ranks' inboxes
///   receiving  grouped, padded: a row from the inbox to each of its positions; in_place: nothing
///   returning  each expert row to its place at home; where rows are summed into one, each of them
///              to the place of the sum
///   gathering  each row that came home to the place of the output row
class limit_subject final : public subject {
 public:
  /// Collective.
  static result<std::unique_ptr<limit_subject>> make(group const& ranks, workload const& work,
                                                     cpu_executor& threads);

  std::string name() const override { return "limit"; }
  result<void> run(int iteration) override;
  /// Bytes that one operation in one slot copies on this rank.
  std::uint64_t copied() const { return copied_; }

 private:
  limit_subject(workload const& work, cpu_executor& threads) : work_(work), threads_(threads) {}
  std::uint64_t send(caller_rows const& rows, int slot);
  std::uint64_t receive(int slot);
  std::uint64_t give_back(caller_rows const& rows, int slot);
  std::uint64_t gather(caller_rows const& rows, int slot);
  std::byte* inbox(int rank, int slot, int source, int token) const;
  std::byte* returned(int rank, int slot, std::int64_t row) const;

  workload const& work_;
  cpu_executor& threads_;
  shared_windows windows_;
  std::size_t inbox_bytes_ = 0;  ///< of one record
  std::size_t slot_bytes_ = 0;
  std::size_t returned_at_ = 0;  ///< within a slot
  window positions_;             ///< [slots, positions, record]
  std::size_t positions_bytes_ = 0;
  std::uint64_t copied_ = 0;
};

}  // namespace ferry::bench
