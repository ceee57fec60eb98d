// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "exec/emulated/emulated_memory.hpp"

#include "base/fail.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <map>
#include <mutex>

namespace ferry::emulated_memory {
namespace {

constexpr std::size_t arena_bytes = std::size_t{1} << 38;  // of addresses; memory comes when used
constexpr std::size_t page = 4096;

/// Which parts of the arena are taken, by device address, and what memory is pinned.
class arena {
 public:
  result<void*> allocate(std::size_t bytes) {
    std::lock_guard const lock(guard_);
    FERRY_CHECK(reserve());
    // A page that nobody owns lies between two allocations.
    std::size_t const size = (bytes + page - 1) / page * page;
    std::size_t at = 0;
    for (auto const& [start, taken] : taken_) {
      if (start - at >= size + page) break;
      at = start + taken + page;
    }
    if (size > arena_bytes || at > arena_bytes - size)
      return fail(error_code::out_of_memory, "{} bytes of emulated device memory", bytes);
    if (mmap(base_ + arena_bytes + at, size, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
      return fail_errno(error_code::out_of_memory, "emulated device memory", errno);
    taken_.emplace(at, size);
    return static_cast<void*>(base_ + at);
  }

  result<void*> allocate_pinned(std::size_t bytes) {
    void* const at =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return fail_errno(error_code::out_of_memory, "pinned memory", errno);
    std::lock_guard const lock(guard_);
    pinned_.emplace(static_cast<std::byte*>(at), bytes);
    return at;
  }

  void release(void* at) {
    std::lock_guard const lock(guard_);
    auto* const address = static_cast<std::byte*>(at);
    if (auto const found = pinned_.find(address); found != pinned_.end()) {
      munmap(at, found->second);
      pinned_.erase(found);
      return;
    }
    auto const found = taken_.find(static_cast<std::size_t>(address - base_));
    if (found == taken_.end()) return;
    mmap(address + arena_bytes, found->second, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    taken_.erase(found);
  }

  bool holds(std::byte const* at) const {
    auto const address = reinterpret_cast<std::uintptr_t>(at);
    auto const base = reinterpret_cast<std::uintptr_t>(base_);
    return base_ && address >= base && address - base < arena_bytes;
  }
  bool is_pinned(std::byte const* at) {
    std::lock_guard const lock(guard_);
    auto after = pinned_.upper_bound(const_cast<std::byte*>(at));
    if (after == pinned_.begin()) return false;
    --after;
    return at < after->first + after->second;
  }

 private:
  result<void> reserve() {
    if (base_) return {};
    void* const at = mmap(nullptr, 2 * arena_bytes, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
      return fail_errno(error_code::out_of_memory, "addresses for emulated device memory", errno);
    base_ = static_cast<std::byte*>(at);
    return {};
  }

  std::mutex guard_;
  std::byte* base_ = nullptr;  // set once, before anyone holds an address in it
  std::map<std::size_t, std::size_t> taken_;
  std::map<std::byte*, std::size_t> pinned_;
};

arena& all() {
  static arena one;
  return one;
}

}  // namespace

result<void*> allocate(memory_kind kind, std::size_t bytes) {
  return kind == memory_kind::pinned ? all().allocate_pinned(bytes) : all().allocate(bytes);
}

void release(void* at) {
  if (at) all().release(at);
}

result<void*> reached_by_device(void const* at) {
  auto* const address = static_cast<std::byte*>(const_cast<void*>(at));
  if (!at) return static_cast<void*>(nullptr);
  if (all().holds(address)) return static_cast<void*>(address + arena_bytes);
  if (all().is_pinned(address)) return static_cast<void*>(address);
  return fail(error_code::invalid_argument,
              "address {} is memory of the host, which the emulated device cannot reach", at);
}

void* reached_by_copy(void const* at) {
  auto* const address = static_cast<std::byte*>(const_cast<void*>(at));
  return all().holds(address) ? address + arena_bytes : address;
}

}  // namespace ferry::emulated_memory
