// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/files/safetensors.hpp>

#include "files/safetensors_writer.hpp"
#include "files/scratch_directory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <cstring>
#include <numeric>
#include <random>

namespace ferry {
namespace {

using test::safetensors_bytes;
using testing::HasSubstr;

template <class T>
std::string raw(std::vector<T> const& values) {
  return {reinterpret_cast<char const*>(values.data()), values.size() * sizeof(T)};
}

template <class T>
std::vector<T> elements(tensor_view const& view) {
  std::vector<T> values(view.data.size() / sizeof(T));
  std::memcpy(values.data(), view.data.data(), view.data.size());
  return values;
}

/// Reads every byte of every tensor, as a user would.
std::size_t sum_of(safetensors const& file) {
  std::size_t sum = 0;
  for (auto name : file.names()) {
    auto view = file.tensor(name).value();
    for (auto b : view.data) sum += static_cast<std::size_t>(b);
  }
  return sum;
}

class safetensors_file : public testing::Test {
 protected:
  result<safetensors> open(std::string_view bytes) {
    test::write_file(directory_ / "x.safetensors", bytes);
    return safetensors::open(directory_ / "x.safetensors");
  }
  void expect_refused(std::string_view bytes, std::string const& reason) {
    auto opened = open(bytes);
    ASSERT_FALSE(opened) << reason;
    EXPECT_EQ(opened.error().code, error_code::malformed_input) << opened.error().message;
    EXPECT_THAT(opened.error().message, HasSubstr("x.safetensors: "));
    EXPECT_THAT(opened.error().message, HasSubstr(reason));
  }
  test::scratch_directory directory_;
};

TEST_F(safetensors_file, gives_back_what_was_written) {
  test::safetensors_writer writer;
  writer.add("b", "F32", {2, 3}, raw<float>({1, 2, 3, 4, 5, 6}));
  writer.add("a", "BF16", {1}, raw<std::uint16_t>({0x3f80}));
  writer.add("scalar", "I64", {}, raw<std::int64_t>({-7}));
  writer.add("none", "F64", {0, 5}, "");
  auto file = open(writer.bytes()).value();
  EXPECT_THAT(file.names(), testing::ElementsAre("a", "b", "none", "scalar"));
  EXPECT_EQ(file.metadata().at("format"), "pt");
  auto b = file.tensor("b").value();
  EXPECT_EQ(b.type, storage_type::f32);
  EXPECT_EQ(b.name, "b");
  EXPECT_THAT(b.shape, testing::ElementsAre(2, 3));
  EXPECT_EQ(b.size(), 6);
  EXPECT_THAT(elements<float>(b), testing::ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(elements<std::int64_t>(file.tensor("scalar").value()), testing::ElementsAre(-7));
  EXPECT_EQ(file.tensor("scalar").value().size(), 1);
  EXPECT_EQ(file.tensor("none").value().data.size(), 0u);
}

TEST_F(safetensors_file, knows_every_type_by_name_and_size) {
  std::vector<std::pair<char const*, std::size_t>> types = {
      {"BOOL", 1}, {"U8", 1},      {"I8", 1},      {"U16", 2},    {"I16", 2},  {"U32", 4},
      {"I32", 4},  {"U64", 8},     {"I64", 8},     {"F16", 2},    {"BF16", 2}, {"F32", 4},
      {"F64", 8},  {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"F8_E8M0", 1}};
  test::safetensors_writer writer;
  for (auto [name, bytes] : types) writer.add(name, name, {3}, std::string(3 * bytes, 'x'));
  auto file = open(writer.bytes()).value();
  for (auto [name, bytes] : types) {
    auto type = file.tensor(name).value().type;
    EXPECT_STREQ(to_string(type), name);
    EXPECT_EQ(bytes_of(type), bytes) << name;
  }
}

TEST_F(safetensors_file, aligns_tensors_that_the_file_does_not) {
  auto file = open(safetensors_bytes(R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}} )",
                                     raw<float>({1.5f, -2.5f})))
                  .value();
  for (int i = 0; i < 2; ++i) {
    auto x = file.tensor("x").value();
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(x.data.data()) % 4, 0u);
    EXPECT_THAT(elements<float>(x), testing::ElementsAre(1.5f, -2.5f));
  }
}

TEST_F(safetensors_file, outlives_the_first_copy_and_the_name_on_disk) {
  test::safetensors_writer writer;
  writer.add("x", "F32", {1}, raw<float>({3}));
  auto first = std::make_unique<safetensors>(open(writer.bytes()).value());
  auto second = *first;
  first.reset();
  std::filesystem::remove(directory_ / "x.safetensors");
  EXPECT_THAT(elements<float>(second.tensor("x").value()), testing::ElementsAre(3));
}

TEST_F(safetensors_file, leaves_untouched_tensors_out_of_memory) {
  constexpr std::size_t mebibyte = 1 << 20;
  test::safetensors_writer writer;
  for (int i = 0; i < 16; ++i)
    writer.add("t" + std::to_string(i), "U8", {mebibyte}, std::string(mebibyte, 'a'));
  auto file = open(writer.bytes()).value();
  std::size_t sum = 0;
  auto touched = file.tensor("t8").value();
  for (auto b : touched.data) sum += static_cast<std::size_t>(b);
  EXPECT_EQ(sum, 'a' * mebibyte);
  std::ifstream maps("/proc/self/smaps");
  std::size_t resident = 0;
  bool here = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("x.safetensors") != std::string::npos) here = true;
    if (here && line.starts_with("Rss:")) {
      resident = std::stoul(line.substr(4)) * 1024;
      break;
    }
  }
  ASSERT_TRUE(here);
  EXPECT_GE(resident, mebibyte);
  EXPECT_LE(resident, 2 * mebibyte);
}

TEST_F(safetensors_file, refuses_names_it_does_not_have) {
  auto file = open(safetensors_bytes("{}")).value();
  EXPECT_FALSE(file.has("x"));
  EXPECT_EQ(file.tensor("x").error().code, error_code::invalid_argument);
  EXPECT_THAT(file.tensor("x").error().message, HasSubstr("\"x\""));
}

TEST_F(safetensors_file, refuses_what_is_no_file) {
  EXPECT_EQ(safetensors::open(directory_ / "absent").error().code, error_code::io);
  EXPECT_EQ(safetensors::open(directory_.path()).error().code, error_code::io);
  ASSERT_EQ(mkfifo((directory_ / "pipe").c_str(), 0600), 0);
  auto pipe = safetensors::open(directory_ / "pipe");
  EXPECT_EQ(pipe.error().code, error_code::io);
  EXPECT_THAT(pipe.error().message, HasSubstr("not a regular file"));
}

TEST_F(safetensors_file, refuses_broken_lengths) {
  expect_refused("", "0 bytes, too short");
  expect_refused("1234567", "7 bytes, too short");
  expect_refused(safetensors_bytes("{}", "", 3), "header of 3 bytes, but the file has 10");
  expect_refused(safetensors_bytes("{}", "", 1u << 30), "header of 1073741824 bytes, more than");
  expect_refused(safetensors_bytes("{}", "", ~std::uint64_t{0}), "18446744073709551615");
  expect_refused(safetensors_bytes("{}", "", 0), "not JSON");
  expect_refused(safetensors_bytes("{}", "x"), "1 bytes of data, but its tensors end at 0");
}

TEST_F(safetensors_file, refuses_headers_that_are_no_list_of_tensors) {
  expect_refused(safetensors_bytes("[]"), "the header is not an object");
  expect_refused(safetensors_bytes("{\"x\":"), "not JSON");
  expect_refused(safetensors_bytes("{}garbage"), "not JSON");
  expect_refused(safetensors_bytes("{\"\xff\":1}"), "not JSON");
  expect_refused(safetensors_bytes(std::string(100000, '[')), "levels of JSON");
  expect_refused(safetensors_bytes("{\"x\":" + std::string(100000, '[')), "levels of JSON");
  expect_refused(safetensors_bytes(R"({"x":[]})"), "tensor \"x\": its entry is not an object");
  expect_refused(safetensors_bytes(R"({"__metadata__":3})"), "__metadata__ is not an object");
  expect_refused(safetensors_bytes(R"({"__metadata__":{"a":3}})"), "__metadata__ \"a\"");
}

TEST_F(safetensors_file, refuses_a_name_that_stands_twice) {
  std::string one = R"("x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
  expect_refused(safetensors_bytes("{" + one + "," + one + "}", "a"), "\"x\" stands twice");
}

TEST_F(safetensors_file, refuses_broken_entries) {
  auto entry = [](std::string const& text) {
    return safetensors_bytes("{\"x\":{" + text + "}}", "12345678");
  };
  expect_refused(entry(R"("shape":[8],"data_offsets":[0,8])"), "no dtype");
  expect_refused(entry(R"("dtype":8,"shape":[8],"data_offsets":[0,8])"), "no dtype");
  expect_refused(entry(R"("dtype":"F7","shape":[8],"data_offsets":[0,8])"), "unknown dtype \"F7\"");
  expect_refused(entry(R"("dtype":"U8","data_offsets":[0,8])"), "no shape");
  expect_refused(entry(R"("dtype":"U8","shape":[-8],"data_offsets":[0,8])"), "-8 is no dimension");
  expect_refused(entry(R"("dtype":"U8","shape":[8.0],"data_offsets":[0,8])"), "8.0 is no");
  expect_refused(entry(R"("dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,8])"),
                 "18446744073709551615 is no dimension");
  expect_refused(entry(R"("dtype":"U8","shape":[8]})").substr(0), "not JSON");
  expect_refused(entry(R"("dtype":"U8","shape":[8])"), "no pair of data_offsets");
  expect_refused(entry(R"("dtype":"U8","shape":[8],"data_offsets":[0])"), "no pair");
  expect_refused(entry(R"("dtype":"U8","shape":[8],"data_offsets":[0,8,9])"), "no pair");
  expect_refused(entry(R"("dtype":"U8","shape":[8],"data_offsets":[-1,7])"), "no pair");
  expect_refused(entry(R"("dtype":"U8","shape":[8],"data_offsets":[8,0])"), "before it begins");
}

TEST_F(safetensors_file, refuses_sizes_that_do_not_fit) {
  auto entry = [](std::string const& type, std::string const& dims, std::string const& offsets) {
    return safetensors_bytes("{\"x\":{\"dtype\":\"" + type + "\",\"shape\":[" + dims +
                                 "],\"data_offsets\":[" + offsets + "]}}",
                             "12345678");
  };
  expect_refused(entry("F32", "3", "0,8"), "8 bytes of data, but type and shape make 12");
  expect_refused(entry("U8", "9", "0,9"), "its data ends at 9, but the file holds 8");
  expect_refused(entry("U8", "7", "1,8"), "its data begins at 1, but the one before ends at 0");
  expect_refused(entry("U8", "7", "0,7"), "8 bytes of data, but its tensors end at 7");
  // 2^32 * 2^32 elements are 0 modulo 2^64, and so are 2^62 doubles.
  expect_refused(entry("U8", "4294967296,4294967296", "0,0"), "more than 2^63 bytes");
  expect_refused(entry("F64", "4611686018427387904", "0,0"), "more than 2^63 bytes");
  expect_refused(entry("U8", "0,4294967296,4294967296,4294967296", "0,0"), "more than 2^63");
  std::string dims = "1";
  for (int i = 0; i < 40; ++i) dims += ",1";
  expect_refused(entry("U8", dims, "0,1"), "41 dimensions, more than 32");
}

TEST_F(safetensors_file, refuses_tensors_that_overlap) {
  expect_refused(safetensors_bytes(R"({"x":{"dtype":"U8","shape":[6],"data_offsets":[0,6]},
                                       "y":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})",
                                   "12345678"),
                 "tensor \"y\": its data begins at 4, but the one before ends at 6");
  expect_refused(safetensors_bytes(R"({"x":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},
                                       "y":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}})",
                                   "12345678"),
                 "tensor \"y\"");
}

TEST_F(safetensors_file, refuses_every_truncation) {
  test::safetensors_writer writer;
  writer.add("a", "F32", {2, 3}, raw<float>({1, 2, 3, 4, 5, 6}));
  writer.add("b", "BF16", {5}, raw<std::uint16_t>({1, 2, 3, 4, 5}));
  auto whole = writer.bytes();
  ASSERT_TRUE(open(whole));
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    auto opened = open(std::string_view(whole).substr(0, bytes));
    ASSERT_FALSE(opened) << bytes;
    ASSERT_EQ(opened.error().code, error_code::malformed_input) << opened.error().message;
  }
}

TEST_F(safetensors_file, survives_every_flipped_bit_and_random_damage) {
  test::safetensors_writer writer;
  writer.add("a", "F32", {2, 3}, raw<float>({1, 2, 3, 4, 5, 6}));
  writer.add("b", "F8_E4M3", {5}, "12345");
  writer.add("c", "I32", {1}, raw<std::int32_t>({9}));
  auto const whole = writer.bytes();
  auto const header_end = whole.size() - writer.data_bytes();
  int refused = 0;
  auto check = [&](std::string const& damaged) {
    auto opened = open(damaged);
    if (opened) {
      // What is accepted must be safe to read; the sum keeps the reads from being optimised away.
      EXPECT_GT(sum_of(*opened), 0u);
    } else {
      ++refused;
      EXPECT_THAT(opened.error().message, HasSubstr("x.safetensors: "));
    }
  };
  for (std::size_t i = 0; i < header_end; ++i)
    for (int bit = 0; bit < 8; ++bit) {
      auto damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      check(damaged);
    }
  EXPECT_GT(refused, static_cast<int>(header_end));
  std::mt19937 random(7);
  std::string_view const alphabet = "{}[]\",:0189-eE.\\ \x00\xff";
  for (int round = 0; round < 3000; ++round) {
    auto damaged = whole;
    for (auto n = random() % 4 + 1; n > 0; --n)
      damaged[8 + random() % (header_end - 8)] = alphabet[random() % alphabet.size()];
    check(damaged);
  }
}

}  // namespace
}  // namespace ferry
