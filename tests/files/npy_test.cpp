// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/files/npy.hpp>

#include "files/safetensors_writer.hpp"
#include "files/scratch_directory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace ferry {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string npy(std::string const& dictionary, std::string const& data, char version = 1) {
  std::string bytes("\x93NUMPY", 6);
  bytes += version;
  bytes += '\0';
  auto length = dictionary.size();
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i, length >>= 8)
    bytes += static_cast<char>(length & 255);
  return bytes + dictionary + data;
}

class npy_files : public testing::Test {
 protected:
  result<npy_file> open(std::string const& bytes) {
    test::write_file(directory_ / "x.npy", bytes);
    return npy_file::open(directory_ / "x.npy");
  }
  void expect_refused(std::string const& bytes, error_code code, char const* reason) {
    auto const file = open(bytes);
    ASSERT_FALSE(file) << reason;
    EXPECT_EQ(file.error().code, code) << file.error().message;
    EXPECT_THAT(file.error().message, HasSubstr("x.npy: "));
    EXPECT_THAT(file.error().message, HasSubstr(reason));
  }
  test::scratch_directory directory_;
};

TEST_F(npy_files, are_read_in_all_three_versions) {
  for (char version : {1, 2, 3}) {
    auto const file =
        open(npy("{'descr': '<i2', 'fortran_order': False, 'shape': (2, 1), }      \n", "abcd",
                 version))
            .value();
    EXPECT_EQ(file.type(), storage_type::i16);
    EXPECT_THAT(file.shape(), ElementsAre(2, 1));
    ASSERT_EQ(file.data().size(), 4u);
    EXPECT_EQ(file.data()[3], std::byte{'d'});
  }
}

TEST_F(npy_files, may_have_any_order_of_fields_one_dimension_none_or_no_elements) {
  EXPECT_THAT(open(npy("{\"shape\":(3,),\"fortran_order\":False,\"descr\":\"|u1\"}", "abc"))
                  .value()
                  .shape(),
              ElementsAre(3));
  EXPECT_TRUE(open(npy("{'descr': '<f8', 'fortran_order': False, 'shape': ()}", "12345678"))
                  .value()
                  .shape()
                  .empty());
  EXPECT_TRUE(open(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 7)}", ""))
                  .value()
                  .data()
                  .empty());
}

TEST_F(npy_files, are_refused_where_they_break_the_format) {
  using enum error_code;
  std::string const good = "{'descr': '<i2', 'fortran_order': False, 'shape': (2,)}";
  expect_refused("", malformed_input, "does not begin");
  expect_refused("PK\x03\x04 and more", malformed_input, "does not begin");
  expect_refused(npy(good, "abc"), malformed_input, "3 bytes of data, but type and shape make 4");
  expect_refused(npy(good, "abcde"), malformed_input, "5 bytes of data");
  expect_refused(npy(good, "abcd").substr(0, 30), malformed_input, "header of 55 bytes");
  expect_refused(npy("{'fortran_order': False, 'shape': (2,)}", "abcd"), malformed_input,
                 "no descr");
  expect_refused(npy("{'descr': '<i2', 'shape': (2,)}", "abcd"), malformed_input,
                 "no fortran_order");
  expect_refused(npy("{'descr': '<i2', 'fortran_order': False}", "abcd"), malformed_input,
                 "no shape");
  for (char const* shape : {"(2", "(-2,)", "(2 2)", "(a,)", "(99999999999999999999,)"})
    expect_refused(
        npy("{'descr': '<i2', 'fortran_order': False, 'shape': " + std::string(shape) + "}", ""),
        malformed_input, "shape");
  expect_refused(
      npy("{'descr': '<i8', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", ""),
      malformed_input, "more than 2^63 bytes");
  std::string ends_early = npy(good, "", 2).substr(0, 10);
  expect_refused(ends_early, malformed_input, "within its header");
}

TEST_F(npy_files, are_refused_where_ferry_cannot_read_them) {
  using enum error_code;
  expect_refused(npy("{'descr': '>i2', 'fortran_order': False, 'shape': (1,)}", "ab"), unsupported,
                 "big-endian");
  expect_refused(npy("{'descr': '<i2', 'fortran_order': True, 'shape': (1,)}", "ab"), unsupported,
                 "column-major");
  expect_refused(npy("{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}", "abcdefgh"),
                 unsupported, "type c8");
  expect_refused(npy("{'descr': [('a', '<i2')], 'fortran_order': False, 'shape': (1,)}", "ab"),
                 unsupported, "records");
  expect_refused(npy("{'descr': '<i2', 'fortran_order': False, 'shape': (1,)}", "ab", 9),
                 unsupported, "version 9");
}

}  // namespace
}  // namespace ferry
