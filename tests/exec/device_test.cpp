// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/exec/device.hpp>

#include <ferry/exec/queue.hpp>

#include "exchange/test_device.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

namespace {

using namespace ferry;
using testing::HasSubstr;

TEST(device, is_the_cpu_unless_asked_for_more) {
  device const d;
  EXPECT_EQ(d.kind(), device_kind::cpu);
  EXPECT_EQ(d.name(), "cpu");
  EXPECT_EQ(d.lanes(), 1);
  EXPECT_EQ(device::open("cpu").value(), d);
}

TEST(device, is_named_by_kind_and_number) {
  for (int lanes : {32, 64}) {
    device const d = device::open("emulated:" + std::to_string(lanes)).value();
    EXPECT_EQ(d.kind(), device_kind::emulated);
    EXPECT_EQ(d.lanes(), lanes);
    EXPECT_EQ(d.name(), "emulated:" + std::to_string(lanes));
    EXPECT_EQ(d.architecture(), "host");
  }
  EXPECT_EQ(device::open("emulated").value(), device::open("emulated:64").value());
}

TEST(device, refuses_names_that_mean_nothing) {
  for (char const* name : {"", "gpu", "cpu:0", "hip:", "hip:-1", "cuda:x", "cuda:1 ", "cudax",
                           "emulated:16", "emulated:99999999999"}) {
    result<device> const d = device::open(name);
    ASSERT_FALSE(d) << name;
    EXPECT_EQ(d.error().code, error_code::invalid_argument) << name << ": " << d.error().message;
  }
  EXPECT_EQ(device::open("emulated:65").error().code, error_code::unsupported);
}

// On a machine with such a device, it opens; elsewhere the cause is named.
TEST(device, says_why_there_is_no_device_of_a_vendor) {
  for (char const* name : {"hip", "cuda:0"}) {
    result<device> const d = device::open(name);
    if (d) continue;
    EXPECT_EQ(d.error().code, error_code::unsupported) << d.error().message;
    EXPECT_THAT(d.error().message,
                testing::AnyOf(HasSubstr("no library"), HasSubstr("driver"), HasSubstr("no device"),
                               HasSubstr("architecture")));
  }
}

TEST(device, gives_zeroed_memory) {
  for (device const& d : {device(), oracle::test_device(0)}) {
    EXPECT_EQ(d.allocate(memory_kind::local, 0).error().code, error_code::invalid_argument);
    for (memory_kind kind :
         {memory_kind::local, memory_kind::rows, memory_kind::flags, memory_kind::pinned}) {
      device_memory const m = d.allocate(kind, 5000).value();
      EXPECT_EQ(m.size(), 5000u);
      EXPECT_EQ(m.where(), d);
      std::vector<std::byte> there(5000, std::byte{1});
      queue q = queue::on(d).value();
      q.copy(there.data(), m.data(), m.size()).value();
      q.wait(std::chrono::seconds(10)).value();
      EXPECT_EQ(there, std::vector<std::byte>(5000));
    }
  }
}

TEST(device, refuses_more_memory_than_it_has) {
  device const d = oracle::test_device(1);
  result<device_memory> const m = d.allocate(memory_kind::local, std::size_t{1} << 50);
  ASSERT_FALSE(m);
  EXPECT_EQ(m.error().code, error_code::out_of_memory);
}

TEST(device, gives_freed_memory_out_again_as_zeros) {
  device const d = oracle::test_device(1);
  bool const takes_the_first_gap = d.kind() == device_kind::emulated;
  std::byte* first = nullptr;
  for (int i = 0; i < 3; ++i) {
    device_memory const m = d.allocate(memory_kind::local, 1 << 20).value();
    if (first && takes_the_first_gap) {
      EXPECT_EQ(m.data(), first);
    }
    first = m.data();
    queue q = queue::on(d).value();
    unsigned char last = 9;
    q.copy(&last, m.data() + m.size() - 1, 1).value();
    q.fill(m.data(), std::byte{0xFF}, m.size()).value();
    q.wait(std::chrono::seconds(10)).value();
    EXPECT_EQ(last, 0);
  }
}

// As on a machine with a GPU: a pointer into the device is of no use to the host.
TEST(device_death, lets_no_host_touch_an_emulated_devices_memory) {
  device const d = device::open("emulated:32").value();
  device_memory const m = d.allocate(memory_kind::rows, 64).value();
  EXPECT_DEATH(m.data()[0] = std::byte{1}, "");
  EXPECT_EXIT(
      {
        device_memory const pinned = d.allocate(memory_kind::pinned, 64).value();
        pinned.data()[0] = std::byte{1};
        std::exit(pinned.data()[0] == std::byte{1} ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
