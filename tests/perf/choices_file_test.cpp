// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "choices_file.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include <unistd.h>

namespace {

using namespace ferry;
using namespace ferry::bench;

class bench_choices : public testing::Test {
 protected:
  void SetUp() override {
    auto const* info = testing::UnitTest::GetInstance()->current_test_info();
    path_ = (std::filesystem::temp_directory_path() /
             (std::string("ferry-choices-") + info->name() + std::to_string(getpid()) + ".npy"))
                .string();
  }
  void TearDown() override { std::filesystem::remove(path_); }

  result<choices_file> read(std::string const& header, std::string const& data, char version = 1) {
    std::ofstream out(path_, std::ios::binary);
    out << "\x93NUMPY" << version << '\0';
    for (int i = 0; i < (version == 1 ? 2 : 4); ++i)
      out << static_cast<char>(header.size() >> 8 * i);
    out << header << data;
    out.close();
    return read_choices(path_);
  }
  static std::string head(std::string const& type, std::string const& shape) {
    return "{'descr': '" + type + "', 'fortran_order': False, 'shape': (" + shape + "), }\n";
  }

  std::string path_;
};

TEST_F(bench_choices, are_tokens_by_layers_by_topk) {
  auto const c = read(head("|u1", "2, 3, 1"), std::string("\x00\x01\x02\x03\x04\xFF", 6)).value();
  EXPECT_EQ(c.tokens, 2);
  EXPECT_EQ(c.layers, 3);
  EXPECT_EQ(c.topk, 1);
  EXPECT_EQ(c.at(0, 2, 0), 2);
  EXPECT_EQ(c.at(1, 0, 0), 3);
  EXPECT_EQ(c.at(1, 2, 0), 255);
}

TEST_F(bench_choices, keep_their_sign_and_never_wrap) {
  EXPECT_EQ(read(head("|i1", "1, 1, 1"), "\xFF").value().at(0, 0, 0), -1);
  EXPECT_EQ(read(head("<i2", "1, 1, 1"), "\xFE\xFF", 2).value().at(0, 0, 0), -2);
  EXPECT_EQ(read(head("<u4", "1, 1, 1"), "\xFF\xFF\xFF\xFF").value().at(0, 0, 0), 4294967295);
  EXPECT_EQ(read(head("<u8", "1, 1, 1"), "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF").value().at(0, 0, 0),
            INT64_MAX);
}

TEST_F(bench_choices, refuse_every_truncation) {
  std::string const header = head("<i4", "2, 1, 2"), data(16, '\0');
  ASSERT_TRUE(read(header, data));
  std::string whole;
  {
    std::ifstream in(path_, std::ios::binary);
    whole.assign(std::istreambuf_iterator<char>(in), {});
  }
  for (std::size_t length = 0; length < whole.size(); ++length) {
    std::ofstream(path_, std::ios::binary) << whole.substr(0, length);
    auto const c = read_choices(path_);
    ASSERT_FALSE(c) << length;
    EXPECT_EQ(c.error().code, error_code::malformed_input) << length;
  }
}

TEST_F(bench_choices, refuse_other_types_orders_and_shapes) {
  for (char const* type : {"<f4", ">i4", "<i3", "|b1", "<U1"})
    EXPECT_FALSE(read(head(type, "1, 1, 1"), std::string(8, '\0'))) << type;
  for (char const* shape : {"", "4,", "2, 2", "1, 1, 1, 1", "0, 1, 1", "9999999999999999999, 1, 1",
                            "999999999999999999, 999999999999999999, 1"})
    EXPECT_FALSE(read(head("<i4", shape), std::string(16, '\0'))) << shape;
  EXPECT_FALSE(read("{}", ""));
  EXPECT_FALSE(read("{'descr': '<i4', 'fortran_order': True, 'shape': (1, 1, 1)}", "abcd"));
}

}  // namespace
