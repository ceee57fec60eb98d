// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "exchange/announced.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

namespace {

using namespace ferry;
using testing::HasSubstr;

constexpr announced wide{device_kind::hip, 64, fp8_code::fnuz};

TEST(announced, are_read_as_they_were_written) {
  announced const read = unpacked(packed(wide), 1, 0).value();
  EXPECT_EQ(read.kind, wide.kind);
  EXPECT_EQ(read.lanes, wide.lanes);
  EXPECT_EQ(read.fp8, wide.fp8);
}

TEST(announced, of_the_other_byte_order_are_refused) {
  bytes swapped = packed(wide);
  std::reverse(swapped.begin(), swapped.begin() + 8);
  for (std::size_t at = 8; at < swapped.size(); at += 4)
    std::reverse(swapped.begin() + static_cast<std::ptrdiff_t>(at),
                 swapped.begin() + static_cast<std::ptrdiff_t>(at + 4));
  result<announced> const read = unpacked(swapped, 5, 2);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, error_code::unsupported);
  EXPECT_THAT(read.error().message, HasSubstr("rank 5 orders the bytes"));
  EXPECT_THAT(read.error().message, HasSubstr("than rank 2"));
}

TEST(announced, that_nobody_knows_are_refused) {
  for (std::size_t changed : {8, 12, 16}) {
    bytes strange = packed(wide);
    std::int32_t const number = changed == 12 ? 0 : 77;
    std::memcpy(strange.data() + changed, &number, sizeof number);
    result<announced> const read = unpacked(strange, 3, 1);
    ASSERT_FALSE(read) << changed;
    EXPECT_EQ(read.error().code, error_code::unsupported);
    EXPECT_THAT(read.error().message, HasSubstr("rank 3"));
    EXPECT_THAT(read.error().message, HasSubstr("rank 1"));
  }
  bytes const whole = packed(wide);
  for (std::size_t n = 0; n < whole.size(); ++n)
    EXPECT_FALSE(unpacked(std::span(whole).first(n), 3, 1)) << n;
}

TEST(announced, name_both_ranks_where_one_cannot_read_the_other) {
  std::vector<announced> all{{device_kind::cpu, 1, fp8_code::either},
                             {device_kind::cpu, 1, fp8_code::ocp},
                             {device_kind::cpu, 1, fp8_code::fnuz}};
  exchange_options o;
  o.wire = wire::fp8_e4m3;
  o.combine_wire = wire::fp8_e4m3;
  EXPECT_TRUE(check_announced(all, o, 0));
  o.combine_wire = wire::fp8_e4m3fnuz;
  result<void> const mixed = check_announced(all, o, 0);
  ASSERT_FALSE(mixed);
  EXPECT_EQ(mixed.error().code, error_code::unsupported);
  EXPECT_THAT(mixed.error().message, HasSubstr("combine_wire is fp8_e4m3fnuz"));
  EXPECT_THAT(mixed.error().message, HasSubstr("rank 1 would get from rank 0"));
  // Who reads either kind takes FNUZ, as before there were any others.
  all[1].fp8 = fp8_code::either;
  EXPECT_TRUE(check_announced(all, o, 0));

  all[2] = wide;
  result<void> const kinds = check_announced(all, o, 1);
  ASSERT_FALSE(kinds);
  EXPECT_EQ(kinds.error().code, error_code::invalid_argument);
  EXPECT_THAT(kinds.error().message, HasSubstr("cpu on rank 1"));
  EXPECT_THAT(kinds.error().message, HasSubstr("hip on rank 2 (teams of 64 lanes, fp8 of FNUZ)"));
}

TEST(announced, take_the_flavour_of_the_device_unless_told_another) {
  device const cpu;
  EXPECT_EQ(flavour_of(cpu, fp8_flavour::of_device), fp8_code::either);
  EXPECT_EQ(flavour_of(cpu, fp8_flavour::ocp), fp8_code::ocp);
  EXPECT_EQ(flavour_of(cpu, fp8_flavour::fnuz), fp8_code::fnuz);
  EXPECT_EQ(flavour_of(cpu, fp8_flavour::either), fp8_code::either);
}

}  // namespace
