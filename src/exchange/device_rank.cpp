// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "exchange/device_rank.hpp"

#include "base/fail.hpp"
#include "exec/capture_record.hpp"
#include "exec/current_device.hpp"
#include "kernels/emulated_kernels.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

namespace ferry {
namespace {

constexpr std::size_t staging_bytes = 64 << 10;
// A device that is busy with others' work may answer late, but not that late.
constexpr std::chrono::milliseconds longest_read{60'000};

}  // namespace

result<gpu_kernels const*> kernels_of(device const& where) {
  device::state const& about = where.about();
  if (about.kind == device_kind::emulated) return &emulated_kernels(about.lanes);
  if (about.backend && about.backend->kernels)
    return static_cast<gpu_kernels const*>(about.backend->kernels);
  return fail(error_code::unsupported, "no exchange kernels for {}", where.name());
}

result<std::unique_ptr<device_rank>> device_rank::make(group const& ranks, device const& where,
                                                       std::size_t flag_bytes,
                                                       std::size_t row_bytes,
                                                       std::size_t status_offset) {
  auto const local = [&]() -> result<std::unique_ptr<device_rank>> {
    FERRY_TRY(queue reader, queue::on(where));
    std::unique_ptr<device_rank> made(new device_rank(where, std::move(reader)));
    FERRY_TRY(made->kernels_, kernels_of(where));
    FERRY_TRY(current_device const chosen, current_device::make(where));
    if (int const status = made->kernels_->load())
      return fail(error_code::device, "the exchange's kernels cannot be loaded on {}: {}",
                  where.name(), made->kernels_->describe(status));
    FERRY_TRY(made->failed_, where.allocate(memory_kind::local, sizeof(std::uint32_t)));
    FERRY_TRY(made->told_, where.allocate(memory_kind::pinned, sizeof(std::uint32_t)));
    FERRY_TRY(made->staging_, where.allocate(memory_kind::pinned, staging_bytes));
    made->status_offset_ = status_offset;
    return made;
  };
  result<std::unique_ptr<device_rank>> made = local();
  FERRY_CHECK(ranks.agree(made ? result<void>{} : result<void>{made.error()}));
  FERRY_TRY((*made)->windows_, share_device_windows(ranks, where, flag_bytes, row_bytes));
  return made;
}

gpu_waits device_rank::waits(int slot, std::chrono::milliseconds timeout) const {
  std::int64_t const per_millisecond =
      std::max<std::int64_t>(1, where_.about().ticks_per_second / 1000);
  gpu_waits w;
  w.status = reinterpret_cast<status_record*>(peers().flags[peers().rank] + status_offset_);
  w.failed = reinterpret_cast<std::uint32_t*>(failed_.data());
  w.told = reinterpret_cast<std::uint32_t*>(told_.data());
  w.timeout = static_cast<std::uint64_t>(timeout.count() * per_millisecond);
  w.patience = static_cast<std::uint64_t>(50 * per_millisecond);
  w.slot = slot;
  return w;
}

// In parts, through memory that the device reaches: a copy to any other memory of the host may
// block until the device is idle.
result<void> device_rank::transfer(void* to, void const* from, std::size_t size) const {
  // The host looks now, whatever the calling thread captures.
  capture_record::scope const apart(nullptr);
  FERRY_CHECK(reader_.copy(to, from, size));
  return reader_.wait(longest_read);
}

result<void> device_rank::read(void* to, void const* from, std::size_t size) const {
  std::lock_guard const lock(guard_);
  for (std::size_t at = 0; at < size; at += staging_bytes) {
    std::size_t const part = std::min(staging_bytes, size - at);
    FERRY_CHECK(transfer(staging_.data(), static_cast<std::byte const*>(from) + at, part));
    std::memcpy(static_cast<std::byte*>(to) + at, staging_.data(), part);
  }
  return {};
}

result<void> device_rank::write(void* to, void const* from, std::size_t size) const {
  std::lock_guard const lock(guard_);
  for (std::size_t at = 0; at < size; at += staging_bytes) {
    std::size_t const part = std::min(staging_bytes, size - at);
    std::memcpy(staging_.data(), static_cast<std::byte const*>(from) + at, part);
    FERRY_CHECK(transfer(static_cast<std::byte*>(to) + at, staging_.data(), part));
  }
  return {};
}

result<status_record> device_rank::status_of(int rank) const {
  status_record seen;
  FERRY_CHECK(read(&seen, peers().flags[rank] + status_offset_, sizeof seen));
  return seen;
}

bool device_rank::told() const {
  return std::atomic_ref(*reinterpret_cast<std::uint32_t*>(told_.data()))
             .load(std::memory_order_acquire) != 0;
}

void device_rank::take_leave(group const& ranks, std::function<std::size_t(int)> const& place_of,
                             std::uint64_t word, std::chrono::milliseconds longest) const {
  int const own = peers().rank;
  std::vector<int> waited_for;
  for (int r = 0; r < ranks.size(); ++r)
    if (r != own && write(peers().flags[r] + place_of(own), &word, sizeof word))
      waited_for.push_back(r);
  auto const has_left = [&](int r) {
    std::uint64_t said = 0;
    result<void> const seen = read(&said, peers().flags[own] + place_of(r), sizeof said);
    return !seen || said == word || ranks.look(r) != presence::here;
  };
  auto const end = std::chrono::steady_clock::now() + longest;
  for (;;) {
    std::erase_if(waited_for, has_left);
    if (waited_for.empty() || std::chrono::steady_clock::now() >= end) return;
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
}

result<void> device_rank::give_up() const {
  std::uint32_t const yes = 1;
  return write(failed_.data(), &yes, sizeof yes);
}

}  // namespace ferry
