// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The calling thread's current device, which launches of kernels go to.
#pragma once

#include "exec/device_backend.hpp"

#include <utility>

namespace ferry {

/// Makes a device the thread's current one while this lives. The thread may be an engine's: what it
/// had chosen before is current again afterwards.
class current_device {
 public:
  /// The CPU needs no choice.
  /// Errors   device
  static result<current_device> make(device const& where) {
    device::state const& about = where.about();
    int before = 0;
    if (about.backend) FERRY_CHECK(to_result(about.backend->make_current(about.ordinal, &before)));
    return current_device(about, before);
  }
  current_device(current_device&& other) noexcept
      : backend_(std::exchange(other.backend_, nullptr)), before_(other.before_) {}
  current_device& operator=(current_device&&) = delete;
  ~current_device() {
    if (backend_) static_cast<void>(backend_->make_current(before_, nullptr));
  }

 private:
  current_device(device::state const& about, int before)
      : backend_(before == about.ordinal ? nullptr : about.backend), before_(before) {}

  device_backend const* backend_;
  int before_;
};

}  // namespace ferry
