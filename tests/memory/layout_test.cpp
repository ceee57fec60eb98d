// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/memory/layout.hpp>

#include <gtest/gtest.h>

namespace {

using namespace ferry;

enum class field { first, second, third, inner, count_ };

constexpr field_layout<field> lay_out() {
  field_layout<field> l;
  l.add(field::first, 3, 5, 1);
  l.add(field::second, 2, 64, 32);
  l.add(field::third, 0, 8, 8);
  l.add_within(field::inner, field::second, 24);
  return l;
}
constexpr field_layout<field> l = lay_out();
static_assert(l.offset(field::second) == 32);

TEST(layout, puts_fields_one_after_the_other_at_their_alignment) {
  EXPECT_EQ(l.offset(field::first), 0u);
  EXPECT_EQ(l.offset(field::first, 2), 10u);
  EXPECT_EQ(l.offset(field::second), 32u);
  EXPECT_EQ(l.offset(field::second, 1), 96u);
  EXPECT_EQ(l.stride(field::second), 64u);
  EXPECT_EQ(l[field::first].items, 3u);
  EXPECT_EQ(l.offset(field::third), 160u);
  EXPECT_EQ(l.bytes(), 160u);
}

TEST(layout, puts_a_field_into_each_item_of_another) {
  EXPECT_EQ(l.offset(field::inner), 56u);
  EXPECT_EQ(l.offset(field::inner, 1), 120u);
  EXPECT_EQ(l.stride(field::inner), 64u);
  EXPECT_EQ(l[field::inner].items, 2u);
}

}  // namespace
