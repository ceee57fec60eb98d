// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/exec/device.hpp>

#include "base/fail.hpp"
#include "exec/backend_library.hpp"
#include "exec/device_backend.hpp"
#include "exec/emulated/emulated_backend.hpp"

#include <ferry/exec/queue.hpp>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace ferry {
namespace {

struct kind_name {
  device_kind kind;
  char const* name;
  int first;  ///< the ordinal of a name without one
};
constexpr kind_name kinds[] = {{device_kind::cpu, "cpu", 0},
                               {device_kind::hip, "hip", 0},
                               {device_kind::cuda, "cuda", 0},
                               {device_kind::emulated, "emulated", 64}};

result<std::pair<device_kind, int>> parse(std::string_view name) {
  std::string_view const stem = name.substr(0, name.find(':'));
  for (kind_name const& k : kinds) {
    if (stem != k.name) continue;
    if (stem.size() == name.size()) return std::pair{k.kind, k.first};
    std::string_view const digits = name.substr(stem.size() + 1);
    int number = 0;
    auto const [end, wrong] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    bool const whole = wrong == std::errc{} && end == digits.data() + digits.size() &&
                       !digits.empty() && digits[0] != '-';
    if (whole && k.kind != device_kind::cpu) return std::pair{k.kind, number};
    break;
  }
  return fail(
      error_code::invalid_argument,
      "no device is called '{}'; cpu, hip, hip:i, cuda, cuda:i, emulated:32 and emulated:64 "
      "are",
      name);
}

result<device_backend const*> backend_of(device_kind kind) {
  if (kind == device_kind::emulated) return &emulated_backend();
  return open_backend(to_string(kind));
}

}  // namespace

char const* to_string(device_kind kind) {
  for (kind_name const& k : kinds)
    if (k.kind == kind) return k.name;
  return "unknown";
}

result<void> to_result(backend_status const& status) {
  if (!status.failed) return {};
  return error{static_cast<error_code>(status.failed - 1), status.message};
}

backend_status to_status(result<void> const& outcome) {
  backend_status status;
  if (outcome) return status;
  status.failed = 1 + static_cast<int>(outcome.error().code);
  std::string const& text = outcome.error().message;
  std::memcpy(status.message, text.data(), std::min(text.size(), sizeof status.message - 1));
  return status;
}

device::device() {
  static auto const cpu = std::make_shared<state const>();
  state_ = cpu;
}

result<device> device::open(std::string_view name) {
  FERRY_TRY(auto const wanted, parse(name));
  if (wanted.first == device_kind::cpu) return device();
  return open_numbered(wanted.first, wanted.second);
}

result<device> device::open_numbered(device_kind kind, int ordinal) {
  FERRY_TRY(device_backend const* const backend, backend_of(kind));
  int count = 0;
  FERRY_CHECK(to_result(backend->count(&count)));
  if (ordinal >= count)
    return fail(error_code::unsupported, "no device {}:{}; this machine has {} of them",
                to_string(kind), ordinal, count);
  device_facts facts;
  FERRY_CHECK(to_result(backend->describe(ordinal, &facts)));
  auto made = std::make_shared<state>();
  made->backend = backend;
  made->kind = kind;
  made->ordinal = ordinal;
  made->name = fmt::format("{}:{}", to_string(kind), ordinal);
  made->model = facts.model;
  made->architecture = facts.architecture;
  made->identity = facts.identity;
  made->lanes = facts.lanes;
  made->fp8_is_fnuz = facts.fp8_is_fnuz != 0;
  made->ticks_per_second = facts.ticks_per_second;
  return device(std::move(made));
}

device_kind device::kind() const {
  return state_->kind;
}
int device::ordinal() const {
  return state_->ordinal;
}
std::string const& device::name() const {
  return state_->name;
}
std::string const& device::model() const {
  return state_->model;
}
std::string const& device::architecture() const {
  return state_->architecture;
}
int device::lanes() const {
  return state_->lanes;
}
bool device::fp8_is_fnuz() const {
  return state_->fp8_is_fnuz;
}

result<device_memory> device::allocate(memory_kind kind, std::size_t bytes) const {
  if (bytes == 0) return fail(error_code::invalid_argument, "0 bytes of memory on {}", name());
  device_memory made;
  made.where_ = *this;
  made.kind_ = kind;
  if (state_->kind == device_kind::cpu) {
    made.data_ = static_cast<std::byte*>(std::calloc(bytes, 1));
    if (!made.data_) return fail(error_code::out_of_memory, "{} bytes of memory", bytes);
    made.bytes_ = bytes;
    return made;
  }
  void* at = nullptr;
  FERRY_CHECK(to_result(state_->backend->allocate(state_->ordinal, kind, bytes, &at)));
  made.data_ = static_cast<std::byte*>(at);
  made.bytes_ = bytes;
  return made;
}

device_memory::~device_memory() {
  if (!data_) return;
  device::state const& s = where_.about();
  if (s.backend)
    static_cast<void>(s.backend->release(s.ordinal, kind_, data_));
  else
    std::free(data_);
}

}  // namespace ferry
