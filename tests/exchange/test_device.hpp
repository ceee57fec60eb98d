// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The devices that tests of device ranks run on.
#pragma once

#include <ferry/exec/device.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace ferry::oracle {

/// What FERRY_TEST_DEVICE says: a name that device::open takes, or "gpu" for the first one that is
/// there. Empty where it is not set.
inline std::string chosen_device() {
  char const* const named = std::getenv("FERRY_TEST_DEVICE");
  return named ? named : "";
}

/// The chosen device, or why there is none; without a choice an emulated one, of 32 and 64 lanes in
/// turn.
inline result<device> find_test_device(int turn) {
  std::string const named = chosen_device();
  if (named.empty()) return device::open(turn % 2 ? "emulated:64" : "emulated:32");
  if (named != "gpu") return device::open(named);
  result<device> const hip = device::open("hip");
  if (hip) return hip;
  result<device> const cuda = device::open("cuda");
  if (cuda) return cuda;
  return error{cuda.error().code, hip.error().message + "; " + cuda.error().message};
}
inline device test_device(int turn) {
  return find_test_device(turn).value();
}
inline bool on_gpu() {
  return !chosen_device().empty() && test_device(0).kind() != device_kind::emulated;
}

/// Skips every test of a program where the device that was chosen is not there.
class needs_device : public ::testing::Environment {
 public:
  void SetUp() override {
    if (result<device> const d = find_test_device(0); !d)
      GTEST_SKIP() << "no device for this test: " << d.error().message;
  }
};
inline auto* const device_environment = ::testing::AddGlobalTestEnvironment(new needs_device);

}  // namespace ferry::oracle
