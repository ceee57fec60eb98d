// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/balance/load_files.hpp>

#include "files/safetensors_writer.hpp"
#include "files/scratch_directory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

namespace ferry {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <class T>
std::string raw(std::vector<T> const& values) {
  return {reinterpret_cast<char const*>(values.data()), values.size() * sizeof(T)};
}

/// An npy file of version 1 around this dictionary.
std::string npy(std::string const& dictionary, std::string const& data) {
  std::string const magic("\x93NUMPY\x01\x00", 8);
  return magic + static_cast<char>(dictionary.size() & 255) +
         static_cast<char>(dictionary.size() >> 8) + dictionary + data;
}

class load_files : public testing::Test {
 protected:
  std::filesystem::path write(std::string const& name, std::string const& bytes) {
    test::write_file(directory_ / name, bytes);
    return directory_ / name;
  }
  template <class T>
  void expect_refused(result<T> const& read, char const* reason) {
    ASSERT_FALSE(read) << reason;
    EXPECT_THAT(read.error().message, HasSubstr(reason));
  }
  test::scratch_directory directory_;
};

TEST_F(load_files, keep_windows_and_samples_bit_for_bit) {
  load_file all;
  all.windows.push_back(load_window::make(2, 3).value());
  ASSERT_TRUE(all.windows[0].add_step(std::vector<std::int64_t>{1, 2, 3, 4, 5, 6}));
  ASSERT_TRUE(all.windows[0].add_step(std::vector<std::int64_t>{0, 2, 0, 9, 5, 1}));
  all.windows.push_back(
      load_window::restore(2, 3, 7, {0.1, 1e-300, 0, 3, 1e15 + 1, 2.0 / 3}, {1, 1, 1, 9, 1e30, 1})
          .value());
  all.sample = routing_trace{2, 2, 2, {0, 1, 2, -1, 1, 2, 0, 2}};
  auto const file = directory_ / "loads.json";
  ASSERT_TRUE(save_loads(file, all));
  auto const back = open_load_file(file).value();
  ASSERT_EQ(back.windows.size(), 2u);
  for (std::size_t w = 0; w < 2; ++w) {
    EXPECT_EQ(back.windows[w].steps(), all.windows[w].steps());
    for (int l = 0; l < 2; ++l)
      for (int e = 0; e < 3; ++e) {
        EXPECT_EQ(back.windows[w].sum(l, e), all.windows[w].sum(l, e));
        EXPECT_EQ(back.windows[w].sum_of_squares(l, e), all.windows[w].sum_of_squares(l, e));
      }
  }
  EXPECT_EQ(back.sample->experts, all.sample->experts);
  auto const windows = read_loads(file).value();
  ASSERT_EQ(windows.size(), 2u);
  EXPECT_THAT(windows[0].values, ElementsAre(1, 4, 3, 13, 10, 7));
  // Other engines find the last window's sums.
  std::ifstream in(file);
  std::string const text(std::istreambuf_iterator<char>(in), {});
  EXPECT_THAT(text, HasSubstr("\"logical_count\":[[0.1,"));
}

TEST_F(load_files, read_logical_counts_of_one_window_or_several) {
  auto const one = read_loads(write("a.json", R"({"logical_count": [[1, 2.5], [0, 3]]})")).value();
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].num_layers, 2);
  EXPECT_THAT(one[0].values, ElementsAre(1, 2.5, 0, 3));
  auto const two =
      read_loads(write("b.json", R"({"logical_count": [[[1, 2]], [[3, 4]]], "more": 1})")).value();
  ASSERT_EQ(two.size(), 2u);
  EXPECT_THAT(two[1].values, ElementsAre(3, 4));
}

TEST_F(load_files, refuse_json_that_is_no_table_of_loads) {
  auto const read = [&](char const* text) { return read_loads(write("a.json", text)); };
  expect_refused(read("[1, 2]"), "neither ferry_loads nor logical_count");
  expect_refused(read(R"({"logical_count": []})"), "not a list of layers");
  expect_refused(read(R"({"logical_count": [[1, 2], [3]]})"), "layers of 2 and of 1 experts");
  expect_refused(read(R"({"logical_count": [[1, "x"]]})"), "\"x\" is not a number");
  expect_refused(read(R"({"logical_count": [[1, null]]})"), "null is not a number");
  expect_refused(read(R"({"logical_count": [[1, -2]]})"), "expert 1 in layer 0 is -2");
  expect_refused(read(R"({"logical_count": [[1, NaN]]})"), "not JSON");
  expect_refused(read(R"({"logical_count": [[0, 0]]})"), "the window is empty");
  expect_refused(read(R"({"ferry_loads": 1, "windows": []})"), "no list of windows");
  expect_refused(read(R"({"ferry_loads": 1, "windows": [{"steps": 0, "sums": [[0]],
                                                         "sums_of_squares": [[0]]}]})"),
                 "all 1 windows are empty");
  expect_refused(read(R"({"ferry_loads": 1, "windows": [{"steps": 1, "sums": [[5]],
                                                         "sums_of_squares": [[1]]}]})"),
                 "no 1 steps make");
  EXPECT_EQ(read_loads(directory_ / "missing.json").error().code, error_code::io);
}

TEST_F(load_files, read_weight_from_safetensors_in_any_number_type) {
  test::safetensors_writer f32, i64;
  f32.add("weight", "F32", {1, 3}, raw<float>({1, 2, 0.5}));
  i64.add("weight", "I64", {3, 1}, raw<std::int64_t>({1, 2, 3}));
  EXPECT_THAT(read_loads(write("a.safetensors", f32.bytes())).value()[0].values,
              ElementsAre(1, 2, 0.5));
  EXPECT_EQ(read_loads(write("b.safetensors", i64.bytes())).value()[0].num_layers, 3);
}

TEST_F(load_files, refuse_safetensors_without_a_table_of_weight) {
  test::safetensors_writer other, flat, nan, none;
  other.add("loads", "F32", {1, 1}, raw<float>({1}));
  flat.add("weight", "F32", {3}, raw<float>({1, 2, 3}));
  nan.add("weight", "F32", {1, 2}, raw<float>({1, std::nanf("")}));
  none.add("weight", "F32", {0, 2}, "");
  expect_refused(read_loads(write("a.safetensors", other.bytes())), "no tensor \"weight\"");
  expect_refused(read_loads(write("b.safetensors", flat.bytes())), "with 1 dimensions");
  expect_refused(read_loads(write("c.safetensors", nan.bytes())), "expert 1 in layer 0 is nan");
  expect_refused(read_loads(write("d.safetensors", none.bytes())), "0 layers");
}

TEST_F(load_files, read_choices_of_three_widths) {
  std::string const head = "{'fortran_order': False, 'shape': (2, 1, 2), 'descr': ";
  for (auto const& [descr, bytes] : {std::pair{"'<i2', }", raw<std::int16_t>({0, 3, -1, 2})},
                                     {"'<i4', }", raw<std::int32_t>({0, 3, -1, 2})},
                                     {"'<i8', }", raw<std::int64_t>({0, 3, -1, 2})}}) {
    auto const trace = read_choices(write("a.npy", npy(head + descr, bytes))).value();
    EXPECT_EQ(trace.num_tokens, 2);
    EXPECT_EQ(trace.num_layers, 1);
    EXPECT_EQ(trace.topk, 2);
    EXPECT_THAT(trace.experts, ElementsAre(0, 3, -1, 2));
  }
  auto const flat =
      read_choices(write("b.npy", npy("{'descr': '<i2', 'fortran_order': False, 'shape': (2, 2)}",
                                      raw<std::int16_t>({0, 1, 2, 3}))));
  EXPECT_EQ(flat.value().num_layers, 1);
  test::safetensors_writer tensors;
  tensors.add("ids", "I16", {1, 2, 2}, raw<std::int16_t>({0, 1, 2, 3}));
  EXPECT_EQ(read_choices(write("c.safetensors", tensors.bytes())).value().num_layers, 2);
  tensors.add("choices", "I32", {2, 1, 2}, raw<std::int32_t>({9, 8, 7, 6}));
  EXPECT_EQ(read_choices(write("d.safetensors", tensors.bytes())).value().experts[0], 9);
}

TEST_F(load_files, refuse_what_are_no_choices) {
  auto const read = [&](char const* dictionary, std::string const& data) {
    return read_choices(write("a.npy", npy(dictionary, data)));
  };
  expect_refused(
      read("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1)}", raw<float>({1})),
      "expected int16, int32 or int64");
  expect_refused(
      read("{'descr': '<i2', 'fortran_order': False, 'shape': (2,)}", raw<std::int16_t>({0, 1})),
      "with 1 dimensions");
  expect_refused(read("{'descr': '<i2', 'fortran_order': False, 'shape': (0, 1, 2)}", ""),
                 "0 tokens");
  expect_refused(read("{'descr': '<i2', 'fortran_order': False, 'shape': (1, 1, 2)}",
                      raw<std::int16_t>({0, -5})),
                 "-5 is no expert");
}

TEST_F(load_files, keep_placements_and_refuse_broken_ones) {
  placement const where{2, 3, 2, 2, 4, {0, 1, 2, 0, 2, 1, 0, 2}};
  auto const file = write("p.json", to_json(where));
  EXPECT_EQ(read_placement(file).value(), where);
  EXPECT_EQ(read_placement(write("q.json", "[" + to_json(where) + ", {}]")).value(), where);
  expect_refused(
      read_placement(write("r.json", R"({"experts": 2, "ranks": 1, "placement": [[0, 0]]})")),
      "holds expert 0 twice");
  expect_refused(read_placement(write("s.json", R"({"experts": 2, "placement": [[0, 1]]})")),
                 "ranks is missing");
  expect_refused(
      read_placement(write("t.json", R"({"experts": 2, "ranks": 1, "placement": [[0, 0.5]]})")),
      "0.5 is no expert");
  expect_refused(read_placement(write("u.json", "{}")), "no object with a placement");
}

}  // namespace
}  // namespace ferry
