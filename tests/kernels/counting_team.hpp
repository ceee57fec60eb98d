// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// A team that writes down every row that it copies.
#pragma once

#include "kernels/all_ranks.hpp"

#include <ferry/exec/cpu/cpu_team.hpp>

#include <functional>
#include <vector>

namespace ferry::oracle {

struct copied_row {
  std::byte* to;
  std::byte const* from;
  std::size_t bytes;
};

struct copy_log {
  std::vector<copied_row> rows;
  std::function<void(copied_row const&)> after_copy;

  /// Bytes copied out of [begin, end).
  std::size_t out_of(void const* begin, void const* end) const {
    std::size_t sum = 0;
    for (copied_row const& c : rows)
      if (c.from >= begin && c.from < end) sum += c.bytes;
    return sum;
  }
  std::size_t into(void const* begin, void const* end) const {
    std::size_t sum = 0;
    for (copied_row const& c : rows)
      if (c.to >= begin && c.to < end) sum += c.bytes;
    return sum;
  }
  /// Bytes that had to come from memory, by a cache that holds the last row alone: copies of one
  /// row that follow each other read it once.
  std::size_t fetched_from(void const* begin, void const* end) const {
    std::size_t sum = 0;
    std::byte const* last = nullptr;
    for (copied_row const& c : rows) {
      if (c.from < begin || c.from >= end) continue;
      if (c.from != last) sum += c.bytes;
      last = c.from;
    }
    return sum;
  }
};

struct counted_level {};

class counting_team : public cpu_team<counted_level> {
 public:
  counting_team(waiter& waits, std::byte* scratch, std::byte* block_scratch, copy_log& log)
      : cpu_team(0, 1, waits, scratch, block_scratch), log_(&log) {}

  void copy(std::byte* to, std::byte const* from, std::size_t bytes) const {
    std::memcpy(to, from, bytes);
    log_->rows.push_back({to, from, bytes});
    if (log_->after_copy) log_->after_copy(log_->rows.back());
  }

 private:
  copy_log* log_;
};
static_assert(team<counting_team>);

/// Runs a kernel on one rank, as its only team.
template <class Kernel>
void run_counted(all_ranks& ranks, int rank, Kernel const& kernel, copy_log& log) {
  rank_memory& at = ranks.rank(rank);
  std::byte* const scratch = at.slot->scratch;
  counting_team const team(*at.waits, scratch, scratch + row_scratch_bytes(at.frame().shape), log);
  kernel(team,
         mapped_delivery{at.core.mapped.data(), rank, at.core.window.offset(window_field::asleep)});
}

}  // namespace ferry::oracle
