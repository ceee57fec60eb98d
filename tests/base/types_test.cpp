// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/base/types.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>

namespace ferry {

TEST(types, knows_the_size_of_each_element) {
  EXPECT_EQ(bytes_of(dtype::f32), 4u);
  EXPECT_EQ(bytes_of(dtype::bf16), 2u);
  EXPECT_EQ(bytes_of(dtype::fp16), 2u);
  for (dtype one_byte : {dtype::e4m3, dtype::e4m3fnuz, dtype::e8m0, dtype::byte})
    EXPECT_EQ(bytes_of(one_byte), 1u);
}

TEST(types, knows_what_each_wire_format_carries) {
  EXPECT_EQ(element_of(wire::f32), dtype::f32);
  EXPECT_EQ(element_of(wire::bf16), dtype::bf16);
  EXPECT_EQ(element_of(wire::fp16), dtype::fp16);
  EXPECT_EQ(element_of(wire::fp8_e4m3), dtype::e4m3);
  EXPECT_EQ(element_of(wire::fp8_e4m3fnuz), dtype::e4m3fnuz);
  EXPECT_EQ(element_of(wire::fp8_ue8m0), dtype::e4m3);
  EXPECT_EQ(element_of(wire::opaque), dtype::byte);
}

TEST(types, tells_which_wire_formats_have_scales) {
  for (wire w : {wire::fp8_e4m3, wire::fp8_e4m3fnuz, wire::fp8_ue8m0}) EXPECT_TRUE(is_fp8(w));
  for (wire w : {wire::f32, wire::bf16, wire::fp16, wire::opaque}) EXPECT_FALSE(is_fp8(w));
}

TEST(types, divides_and_rounds_up) {
  static_assert(ceil_div(0, 128) == 0);
  static_assert(ceil_div(1, 128) == 1);
  static_assert(ceil_div(128, 128) == 1);
  static_assert(ceil_div(129, 128) == 2);
  EXPECT_EQ(round_up<std::int64_t>(2881, 64), 2944);
  EXPECT_EQ(round_up<std::int64_t>(2880, 64), 2880);
}

TEST(types, names_each_type_and_wire_format_once) {
  std::set<std::string> names;
  for (int i = 0; i <= static_cast<int>(dtype::byte); ++i)
    names.insert(to_string(static_cast<dtype>(i)));
  EXPECT_EQ(names.size(), 7u);
  EXPECT_EQ(names.count("unknown"), 0u);
  names.clear();
  for (int i = 0; i <= static_cast<int>(wire::opaque); ++i)
    names.insert(to_string(static_cast<wire>(i)));
  EXPECT_EQ(names.size(), 7u);
  EXPECT_EQ(names.count("unknown"), 0u);
  EXPECT_STREQ(to_string(wire::fp8_e4m3fnuz), "fp8_e4m3fnuz");
}

}  // namespace ferry
