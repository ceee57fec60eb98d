// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "contract/contract_place.hpp"

#include "base/fail.hpp"
#include "contract/emulated_contract.hpp"
#include "exchange/test_device.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <stdexcept>

namespace ferry::test {
namespace {

// The library of a vendor's kernels, which the build names; empty where it has none.
char const* library_of(device_kind kind) {
  return kind == device_kind::hip ? FERRY_CONTRACT_HIP : FERRY_CONTRACT_CUDA;
}

contract_table const* table_of(device const& where) {
  if (where.kind() == device_kind::emulated) return &emulated_contract(where.lanes());
  char const* const file = library_of(where.kind());
  void* const library = *file ? dlopen(file, RTLD_NOW | RTLD_LOCAL) : nullptr;
  auto const entry =
      library ? reinterpret_cast<contract_entry>(dlsym(library, "ferry_contract")) : nullptr;
  if (!entry)
    throw std::runtime_error("no library of the suites' kernels for " + where.name() + ": " +
                             (*file ? dlerror() : "the build made none"));
  return entry();
}

}  // namespace

std::vector<std::string> contract_devices() {
  if (std::string const chosen = oracle::chosen_device(); !chosen.empty()) return {chosen};
  return {"emulated:32", "emulated:64"};
}

contract_place::contract_place(device const& where, std::chrono::milliseconds timeout)
    : where_(where),
      timeout_(timeout),
      scratch_(where.allocate(memory_kind::local, most_teams * scratch_stride).value()),
      status_(where, 1, memory_kind::flags),
      failed_(where, 1),
      told_(where, 1, memory_kind::pinned),
      asleep_(where, max_mapped_ranks) {
  if (on_cpu()) {
    sleep_at(reinterpret_cast<std::byte*>(asleep_.data()), 0);
    return;
  }
  table_ = table_of(where);
  auto const chosen = current_device::make(where).value();
  checked(table_->load()).value();
}

void contract_place::sleep_at(std::byte* window, std::size_t offset) {
  asleep_offset = offset;
  waiter::settings s;
  s.timeout = timeout_;
  cpu_waits_ = std::make_unique<waiter>(s, reinterpret_cast<std::uint32_t*>(window + offset),
                                        status_.data(), peer_watch{});
}

queue contract_place::make_queue(int blocks) const {
  return on_cpu() ? queue::cpu_stream(blocks).value() : queue::on(where_).value();
}

gpu_waits contract_place::waits() const {
  std::int64_t const per_millisecond = where_.about().ticks_per_second / 1000;
  gpu_waits w;
  w.status = status_.data();
  w.failed = failed_.data();
  w.told = told_.data();
  w.timeout = static_cast<std::uint64_t>(timeout_.count() * per_millisecond);
  w.patience = static_cast<std::uint64_t>(10 * per_millisecond);
  w.slot = 7;
  return w;
}

result<void> contract_place::checked(int status) const {
  if (status == 0) return {};
  return fail(error_code::device, "a kernel of the suites cannot be started on {}: {}",
              where_.name(), table_->describe(status));
}

}  // namespace ferry::test
