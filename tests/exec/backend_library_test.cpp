// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "exec/backend_library.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using namespace ferry;
using testing::HasSubstr;

TEST(backend_library, is_missed_by_name) {
  result<device_backend const*> const b = open_backend("of_nobody");
  ASSERT_FALSE(b);
  EXPECT_EQ(b.error().code, error_code::unsupported);
  EXPECT_THAT(b.error().message, HasSubstr("no library of the of_nobody backend"));
  EXPECT_THAT(b.error().message, HasSubstr("libferry_of_nobody.so"));
}

TEST(backend_library, is_refused_without_the_entry_point) {
  result<device_backend const*> const b = open_backend_file("libm.so.6");
  ASSERT_FALSE(b);
  EXPECT_EQ(b.error().code, error_code::unsupported);
  EXPECT_THAT(b.error().message, HasSubstr("no backend of ferry"));
}

TEST(backend_library, is_refused_with_another_version_of_the_table) {
  result<device_backend const*> const b = open_backend_file(FERRY_OTHER_VERSION);
  ASSERT_FALSE(b);
  EXPECT_EQ(b.error().code, error_code::unsupported);
  EXPECT_THAT(b.error().message, HasSubstr("version 999999"));
}

TEST(backend_library, is_refused_when_it_is_no_library) {
  result<device_backend const*> const b = open_backend_file(__FILE__);
  ASSERT_FALSE(b);
  EXPECT_EQ(b.error().code, error_code::unsupported);
}

}  // namespace
