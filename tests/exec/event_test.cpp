// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/exec/event.hpp>

#include "exchange/test_device.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace {

using namespace ferry;
using namespace std::chrono_literals;

device where() {
  return oracle::test_device(0);
}

TEST(event, holds_a_queue_until_another_has_come_so_far) {
  device const d = where();
  constexpr std::size_t size = 32 << 20;
  for (int turn = 0; turn < 5; ++turn) {
    device_memory const m = d.allocate(memory_kind::local, size).value();
    queue first = queue::on(d).value(), second = queue::on(d).value();
    event e = event::on(d).value();
    EXPECT_TRUE(e.happened().value()) << "never recorded";
    first.fill(m.data(), std::byte{7}, size).value();
    e.record(first).value();
    e.hold(second).value();
    std::byte last{0};
    second.copy(&last, m.data() + size - 1, 1).value();
    second.wait(10s).value();
    EXPECT_EQ(last, std::byte{7});
    EXPECT_TRUE(e.happened().value());
  }
}

TEST(event, belongs_to_one_device) {
  event e = event::on(where()).value();
  queue other = queue::on(device::open("emulated:64").value()).value(), cpu;
  EXPECT_EQ(e.record(other).error().code, error_code::invalid_argument);
  EXPECT_EQ(e.hold(cpu).error().code, error_code::invalid_argument);
}

TEST(event, of_the_cpu_has_happened_when_it_is_recorded) {
  queue q;
  event e = event::on(device()).value();
  e.record(q).value();
  e.hold(q).value();
  EXPECT_TRUE(e.happened().value());
}

}  // namespace
