// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// A vendor's backend library on machines that are played: what it says of devices that it cannot
// use, and what it leaves behind on a thread that works on another one.

#include "exec/current_device.hpp"

#include "exec/gpu/faked_hip/machine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

namespace {

using namespace ferry;
using testing::HasSubstr;

struct vendor_backend : ::testing::Test {
  test::faked_machine& machine = test::machine();
  vendor_backend() { machine = {}; }
};

TEST_F(vendor_backend, names_a_machine_without_devices) {
  result<device> const d = device::open("hip");
  ASSERT_FALSE(d);
  EXPECT_EQ(d.error().code, error_code::unsupported);
  // The vendor's runtime says the same of both.
  bool const driver = access("/dev/kfd", F_OK) == 0;
  EXPECT_THAT(d.error().message, HasSubstr(driver ? "no device" : "no driver"));
}

TEST_F(vendor_backend, names_an_architecture_that_it_holds_no_code_for) {
  machine.devices = 1;
  machine.architecture = "gfx1030:sramecc-";
  machine.has_code = false;
  result<device> const d = device::open("hip");
  ASSERT_FALSE(d);
  EXPECT_EQ(d.error().code, error_code::unsupported);
  EXPECT_THAT(d.error().message, HasSubstr("wrong architecture: device 0 is a gfx1030"));
  EXPECT_THAT(d.error().message, HasSubstr("this build holds code for gfx"));
}

TEST_F(vendor_backend, names_a_device_that_is_not_there) {
  machine.devices = 2;
  machine.architecture = "gfx942";
  result<device> const d = device::open("hip:2");
  ASSERT_FALSE(d);
  EXPECT_EQ(d.error().code, error_code::unsupported);
  EXPECT_THAT(d.error().message, HasSubstr("no device hip:2; this machine has 2"));
}

TEST_F(vendor_backend, says_what_a_device_is) {
  machine.devices = 2;
  machine.architecture = "gfx942:sramecc+:xnack-";
  device const first = device::open("hip").value(), second = device::open("hip:1").value();
  EXPECT_EQ(first.architecture(), "gfx942");
  EXPECT_EQ(first.model(), "a played GPU");
  EXPECT_EQ(first.lanes(), 64);
  EXPECT_TRUE(first.fp8_is_fnuz());
  EXPECT_EQ(first.about().ticks_per_second, 100'000'000);
  EXPECT_EQ(first.about().identity, "0000:c1:00.0");
  EXPECT_EQ(second.about().identity, "0000:c1:00.1");
  machine.architecture = "gfx90a:sramecc+:xnack-";
  device const older = device::open("hip").value();
  EXPECT_FALSE(older.fp8_is_fnuz());
  EXPECT_EQ(older.about().ticks_per_second, 25'000'000)
      << "or its deadlines are four times as long";
}

TEST_F(vendor_backend, leaves_the_threads_current_device_and_its_captures_alone) {
  machine.devices = 3;
  machine.architecture = "gfx90a";
  device const d = device::open("hip:1").value();
  machine.current = 2;
  { device_memory const m = d.allocate(memory_kind::local, 100).value(); }
  EXPECT_EQ(machine.relaxed_calls, 1);
  EXPECT_EQ(machine.current, 2);
  {
    auto const chosen = current_device::make(d).value();
    EXPECT_EQ(machine.current, 1);
  }
  EXPECT_EQ(machine.current, 2);
}

}  // namespace
