// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/transport/device_verbs/formats.hpp>

#include <gtest/gtest.h>

#include <concepts>
#include <string>

namespace ferry::device_verbs {
namespace {

TEST(formats, gives_each_vendor_its_own) {
  auto const name = [](nic_vendor v) {
    return with_format(v, []<class F>(F) -> std::string {
      if constexpr (std::same_as<F, mlx5>) return "mlx5";
      if constexpr (std::same_as<F, bnxt>) return "bnxt";
      if constexpr (std::same_as<F, ionic>) return "ionic";
    });
  };
  for (nic_vendor const v : {nic_vendor::mlx5, nic_vendor::bnxt, nic_vendor::ionic})
    EXPECT_EQ(name(v), to_string(v));
}

// What each code of a vendor means: the tables of docs/nic_formats.md.
TEST(formats, knows_the_vendors_error_codes) {
  using enum nic_status;
  EXPECT_EQ(mlx5::status_of(0x04), local_protection);
  EXPECT_EQ(mlx5::status_of(0x05), flushed);
  EXPECT_EQ(mlx5::status_of(0x10), bad_response);
  EXPECT_EQ(mlx5::status_of(0x16), receiver_not_ready);
  EXPECT_EQ(mlx5::status_of(0x22), other);
  EXPECT_EQ(bnxt::status_of(0x00), ok);
  EXPECT_EQ(bnxt::status_of(0x02), local_length);
  EXPECT_EQ(bnxt::status_of(0x09), receiver_not_ready);
  EXPECT_EQ(bnxt::status_of(0x0b), flushed);
  EXPECT_EQ(bnxt::status_of(0x05), other);
  EXPECT_EQ(ionic::status_of(3), local_protection);
  EXPECT_EQ(ionic::status_of(4), flushed);
  EXPECT_EQ(ionic::status_of(11), retry_exceeded);
  EXPECT_EQ(ionic::status_of(12), receiver_not_ready);
  EXPECT_EQ(ionic::status_of(13), other);
}

}  // namespace
}  // namespace ferry::device_verbs
