// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// What the suites over devices have in common: a case is run on each device that it is
/// instantiated for.
#pragma once

#include "contract/contract_place.hpp"
#include "exchange/test_device.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace ferry::test {

class contract_case : public ::testing::TestWithParam<std::string> {
 protected:
  static device where() {
    return GetParam() == oracle::chosen_device() ? oracle::test_device(0)
                                                 : device::open(GetParam()).value();
  }
  static bool on_cpu() { return where().kind() == device_kind::cpu; }
  /// Every lane of emulated teams is a function of its own: they take fewer turns.
  static int turns(int many) {
    return where().kind() == device_kind::emulated ? std::max(2, many / 10) : many;
  }
  /// Grids of one block and of several; a block of the CPU is one team.
  static std::vector<lane_grid> grids() {
    if (on_cpu()) return {{1, 1}, {2, 1}, {3, 1}, {4, 1}};
    if (where().kind() == device_kind::emulated) return {{1, 1}, {3, 1}, {2, 3}};
    return {{1, 1}, {3, 1}, {2, 3}, {32, 4}, {16, 8}};
  }
  static void finish(queue& q) { q.wait(std::chrono::seconds(120)).value(); }
};

inline std::string device_of_case(::testing::TestParamInfo<std::string> const& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), ':', '_');
  return name;
}

/// Instantiates a suite for the devices that ValuesIn(devices) names.
#define FERRY_CONTRACT_ON(suite, devices) \
  INSTANTIATE_TEST_SUITE_P(on, suite, ::testing::ValuesIn(devices), device_of_case)

}  // namespace ferry::test
