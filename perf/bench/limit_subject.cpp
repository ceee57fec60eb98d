// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "limit_subject.hpp"

#include <algorithm>
#include <cstring>

namespace ferry::bench {

result<std::unique_ptr<limit_subject>> limit_subject::make(group const& ranks, workload const& work,
                                                           cpu_executor& threads) {
  std::unique_ptr<limit_subject> made(new limit_subject(work, threads));
  bench_case const& c = work.of();
  row_sizes const& size = work.size();
  auto const n = [](auto x) { return static_cast<std::size_t>(x); };
  std::size_t const tokens = n(std::max(1, c.tokens));
  made->inbox_bytes_ = round_up(std::max(size.given, size.sent) + size.scales, std::size_t{64});
  made->returned_at_ = n(c.ranks) * tokens * made->inbox_bytes_;
  std::size_t const home_rows = n(c.reduction == reduction::per_rank ? c.ranks : c.topk) * tokens;
  made->slot_bytes_ = made->returned_at_ + home_rows * round_up(size.home, std::size_t{64});
  FERRY_TRY(made->windows_, ranks.share_window(n(c.slots) * made->slot_bytes_));
  result<void> mapped;
  for (int r = 0; r < c.ranks; ++r)
    if (!made->windows_.windows[n(r)].data())
      mapped =
          error{error_code::unsupported, "a peer cannot be mapped: " + made->windows_.why[n(r)]};
  if (c.layout != layout::in_place && work.place().end > 0) {
    made->positions_bytes_ = n(work.place().end) * made->inbox_bytes_;
    auto memory = window::plain(n(c.slots) * made->positions_bytes_);
    if (memory)
      made->positions_ = *memory;
    else
      mapped = memory.error();
  }
  FERRY_CHECK(ranks.agree(mapped));
  return made;
}

std::byte* limit_subject::inbox(int rank, int slot, int source, int token) const {
  auto const row = static_cast<std::size_t>(std::int64_t{source} * work_.of().tokens + token);
  return windows_.windows[static_cast<std::size_t>(rank)].data() +
         static_cast<std::size_t>(slot) * slot_bytes_ + row * inbox_bytes_;
}

std::byte* limit_subject::returned(int rank, int slot, std::int64_t row) const {
  return windows_.windows[static_cast<std::size_t>(rank)].data() +
         static_cast<std::size_t>(slot) * slot_bytes_ + returned_at_ +
         static_cast<std::size_t>(row) * round_up(work_.size().home, std::size_t{64});
}

std::uint64_t limit_subject::send(caller_rows const& rows, int slot) {
  row_sizes const& size = work_.size();
  std::size_t const scales = work_.of().sent == wire::opaque ? size.scales : 0;
  std::uint64_t bytes = 0;
  for (int t = 0; t < work_.of().tokens; ++t)
    work_.routing().for_each_rank(work_.rank(), t, [&](int d) {
      std::byte* const to = inbox(d, slot, work_.rank(), t);
      std::memcpy(to, rows.tokens + static_cast<std::size_t>(t) * size.given, size.given);
      if (scales)
        std::memcpy(to + size.given, rows.scales + static_cast<std::size_t>(t) * scales, scales);
      bytes += size.given + scales;
    });
  return bytes;
}

std::uint64_t limit_subject::receive(int slot) {
  bench_case const& c = work_.of();
  if (c.layout == layout::in_place) return 0;
  std::size_t const record = work_.size().sent + work_.size().scales;
  std::byte* const to = positions_.data() + static_cast<std::size_t>(slot) * positions_bytes_;
  std::uint64_t bytes = 0;
  for (int s = 0; s < c.ranks; ++s)
    for (int t = 0; t < c.tokens; ++t)
      for (int k = 0; k < c.topk; ++k) {
        std::int32_t const at = work_.position(s, t, k);
        if (at < 0) continue;
        std::memcpy(to + static_cast<std::size_t>(at) * inbox_bytes_,
                    inbox(work_.rank(), slot, s, t), record);
        bytes += record;
      }
  return bytes;
}

std::uint64_t limit_subject::give_back(caller_rows const& rows, int slot) {
  bench_case const& c = work_.of();
  std::size_t const size = work_.size().home;
  std::uint64_t bytes = 0;
  auto const copy = [&](int to, std::int64_t row, std::int64_t from) {
    std::memcpy(returned(to, slot, row), rows.results + static_cast<std::size_t>(from) * size,
                size);
    bytes += size;
  };
  for (int s = 0; s < c.ranks; ++s)
    for (int t = 0; t < c.tokens; ++t) {
      std::int64_t const sum = std::int64_t{work_.rank()} * c.tokens + t;
      bool any = false;
      for (int k = 0; k < c.topk; ++k) {
        std::int32_t const at = work_.position(s, t, k);
        if (at < 0) continue;
        any = true;
        if (c.reduction == reduction::per_choice)
          copy(s, std::int64_t{t} * c.topk + k, at);
        else if (c.results == result_rows::experts)
          copy(s, sum, at);
      }
      if (any && c.results == result_rows::summed) copy(s, sum, std::int64_t{s} * c.tokens + t);
    }
  return bytes;
}

std::uint64_t limit_subject::gather(caller_rows const& rows, int slot) {
  bench_case const& c = work_.of();
  std::size_t const size = work_.size().home;
  std::uint64_t bytes = 0;
  for (int t = 0; t < c.tokens; ++t) {
    std::byte* const to = rows.output + static_cast<std::size_t>(t) * size;
    auto const copy = [&](std::int64_t row) {
      std::memcpy(to, returned(work_.rank(), slot, row), size);
      bytes += size;
    };
    if (c.reduction == reduction::per_rank)
      work_.routing().for_each_rank(work_.rank(), t,
                                    [&](int d) { copy(std::int64_t{d} * c.tokens + t); });
    else
      for (int k = 0; k < c.topk; ++k)
        if (work_.routing().of(work_.rank(), t)[k] >= 0) copy(std::int64_t{t} * c.topk + k);
  }
  return bytes;
}

result<void> limit_subject::run(int iteration) {
  operation const op = work_.of().op;
  return for_each_slot(threads_, work_.of().slots, [&](int slot) {
    caller_rows const rows = work_.set(iteration, slot);
    std::uint64_t bytes = 0;
    if (op != operation::combine) bytes += send(rows, slot) + receive(slot);
    if (op != operation::dispatch) bytes += give_back(rows, slot) + gather(rows, slot);
    if (slot == 0) copied_ = bytes;
    return result<void>{};
  });
}

}  // namespace ferry::bench
