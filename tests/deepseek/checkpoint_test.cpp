// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/deepseek/checkpoint.hpp>

#include "files/safetensors_writer.hpp"
#include "files/scratch_directory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

namespace ferry::deepseek {
namespace {

using testing::HasSubstr;

class checkpoint_directory : public testing::Test {
 protected:
  void write_tensor(std::string const& file, std::string const& name, char fill) {
    test::safetensors_writer writer;
    writer.add(name, "U8", {4}, std::string(4, fill));
    test::write_file(directory_ / file, writer.bytes());
  }
  void write_index(std::string_view text) {
    test::write_file(directory_ / "model.safetensors.index.json", text);
  }
  void expect_refused(std::string const& reason, error_code code = error_code::malformed_input) {
    auto opened = checkpoint::open(directory_.path());
    ASSERT_FALSE(opened) << reason;
    EXPECT_EQ(opened.error().code, code) << opened.error().message;
    EXPECT_THAT(opened.error().message, HasSubstr(reason));
    EXPECT_THAT(opened.error().message, HasSubstr(directory_.path().string()));
  }
  static char first(checkpoint const& c, std::string_view name) {
    return static_cast<char>(c.tensor(name).value().data[0]);
  }
  test::scratch_directory directory_;
};

TEST_F(checkpoint_directory, opens_a_single_file) {
  write_tensor("model.safetensors", "x", 'a');
  auto c = checkpoint::open(directory_.path()).value();
  EXPECT_TRUE(c.has("x"));
  EXPECT_FALSE(c.has("y"));
  EXPECT_EQ(first(c, "x"), 'a');
  EXPECT_EQ(c.directory(), directory_.path());
  auto absent = c.tensor("model.norm.weight");
  EXPECT_EQ(absent.error().code, error_code::malformed_input);
  EXPECT_THAT(absent.error().message, HasSubstr("no tensor \"model.norm.weight\""));
}

TEST_F(checkpoint_directory, follows_an_index_into_many_files) {
  write_tensor("one.safetensors", "x", 'a');
  write_tensor("two.safetensors", "y", 'b');
  write_index(test::index_text({{"y", "two.safetensors"}, {"x", "one.safetensors"}}));
  auto c = checkpoint::open(directory_.path()).value();
  EXPECT_THAT(c.names(), testing::ElementsAre("x", "y"));
  EXPECT_EQ(first(c, "x"), 'a');
  EXPECT_EQ(first(c, "y"), 'b');
}

TEST_F(checkpoint_directory, hands_out_tensors_to_several_threads_at_once) {
  write_tensor("one.safetensors", "x", 'a');
  write_tensor("two.safetensors", "y", 'b');
  write_index(test::index_text({{"x", "one.safetensors"}, {"y", "two.safetensors"}}));
  auto c = checkpoint::open(directory_.path()).value();
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&c] {
      EXPECT_EQ(first(c, "x"), 'a');
      EXPECT_EQ(first(c, "y"), 'b');
    });
}

TEST_F(checkpoint_directory, refuses_what_is_no_checkpoint) {
  auto absent = checkpoint::open(directory_ / "absent");
  EXPECT_EQ(absent.error().code, error_code::io);
  EXPECT_THAT(absent.error().message, HasSubstr("absent"));
  expect_refused("neither model.safetensors.index.json nor model.safetensors", error_code::io);
  test::write_file(directory_ / "file", "");
  EXPECT_EQ(checkpoint::open(directory_ / "file").error().code, error_code::io);
  std::filesystem::create_directory(directory_ / "model.safetensors");
  expect_refused("not a regular file", error_code::io);
}

TEST_F(checkpoint_directory, refuses_an_index_that_is_none) {
  write_tensor("one.safetensors", "x", 'a');
  write_index("");
  expect_refused("not JSON");
  write_index("{\"weight_map\":");
  expect_refused("not JSON");
  write_index("[]");
  expect_refused("not a JSON object");
  write_index("{}");
  expect_refused("no weight_map");
  write_index(R"({"weight_map":["one.safetensors"]})");
  expect_refused("no weight_map, or it is not an object");
  write_index(R"({"weight_map":{}})");
  expect_refused("weight_map is empty");
  write_index(R"({"weight_map":{"x":3}})");
  expect_refused("\"x\" names no file");
  write_index(R"({"weight_map":{"x":"one.safetensors","x":"one.safetensors"}})");
  expect_refused("\"x\" stands twice");
  write_index("{\"weight_map\":" + std::string(1 << 20, '['));
  expect_refused("levels of JSON");
}

TEST_F(checkpoint_directory, refuses_files_outside_the_directory) {
  std::filesystem::create_directory(directory_ / "inner");
  write_tensor("inner/one.safetensors", "x", 'a');
  for (std::string name : {"../one.safetensors", "/etc/passwd", "inner/one.safetensors", "..", ".",
                           "", "a\\\\b", "one.safetensors\\u0000"}) {
    write_index(test::index_text({{"x", name}}));
    expect_refused("which is no file of this directory");
  }
}

TEST_F(checkpoint_directory, refuses_an_index_that_the_files_do_not_bear_out) {
  write_tensor("one.safetensors", "x", 'a');
  write_index(test::index_text({{"x", "two.safetensors"}}));
  expect_refused("two.safetensors: No such file", error_code::io);
  write_index(test::index_text({{"x", "one.safetensors"}, {"y", "one.safetensors"}}));
  expect_refused("tensor \"y\" is not in one.safetensors");
  test::write_file(directory_ / "one.safetensors", "broken");
  expect_refused("one.safetensors: 6 bytes, too short");
}

TEST(checkpoint, reads_a_model_in_one_file_and_in_three_alike) {
  std::filesystem::path models = FERRY_TINY_MODELS;
  auto one = checkpoint::open(models / "tiny-A").value();
  auto three = checkpoint::open(models / "tiny-A-sharded").value();
  ASSERT_EQ(one.names(), three.names());
  EXPECT_GT(one.names().size(), 100u);
  for (auto name : one.names()) {
    auto a = one.tensor(name).value();
    auto b = three.tensor(name).value();
    ASSERT_EQ(a.shape, b.shape) << name;
    ASSERT_EQ(a.data.size(), b.data.size()) << name;
    ASSERT_EQ(std::memcmp(a.data.data(), b.data.data(), a.data.size()), 0) << name;
  }
}

TEST(checkpoint, reads_fp8_weights_with_their_scales) {
  auto c = checkpoint::open(std::filesystem::path(FERRY_TINY_MODELS) / "tiny-C").value();
  auto codes = c.tensor("model.layers.0.self_attn.kv_a_proj_with_mqa.weight").value();
  EXPECT_EQ(codes.type, storage_type::e4m3);
  EXPECT_THAT(codes.shape, testing::ElementsAre(160, 384));
  auto scales = c.tensor("model.layers.0.self_attn.kv_a_proj_with_mqa.weight_scale_inv").value();
  EXPECT_EQ(scales.type, storage_type::f32);
  EXPECT_THAT(scales.shape, testing::ElementsAre(2, 3));
}

}  // namespace
}  // namespace ferry::deepseek
