// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Tokenizers for tests: a small one in files, and one to be changed.
#pragma once

#include <ferry/deepseek/tokenizer.hpp>

#include "data/test_data.hpp"
#include "files/safetensors_writer.hpp"
#include "files/scratch_directory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace ferry::deepseek {

using json = nlohmann::json;
using strings = std::vector<std::string>;
using ids = std::vector<std::int32_t>;
using testing::HasSubstr;

inline std::filesystem::path const small = test::test_data() / "tokenizer/small_deepseek";

inline std::string contents_of(std::filesystem::path const& file) {
  std::ifstream in(file, std::ios::binary);
  EXPECT_TRUE(in) << file;
  return {std::istreambuf_iterator<char>(in), {}};
}

// A tokenizer of a few tokens, to be changed by each test.
class tokenizer_directory : public testing::Test {
 protected:
  json document = json::parse(R"({
    "version": "1.0", "normalizer": null, "post_processor": null, "decoder": {"type": "ByteLevel"},
    "added_tokens": [{"id": 10, "content": "<s>", "special": true, "normalized": false,
                      "single_word": false, "lstrip": false, "rstrip": false},
                     {"id": 11, "content": "</s>", "special": true, "normalized": false,
                      "single_word": false, "lstrip": false, "rstrip": false}],
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "Ġ": 2, "ab": 3, "Ġa": 4, "aba": 5},
              "merges": ["a b", "Ġ a"]}})");
  json config;  // null: no such file

  result<tokenizer> load() {
    test::write_file(directory_ / "tokenizer.json", document.dump());
    if (!config.is_null()) test::write_file(directory_ / "tokenizer_config.json", config.dump());
    return tokenizer::load(directory_.path());
  }
  ids encoded(std::string_view text, bool add_special = false) {
    return load().value().encode(text, add_special).value();
  }
  void expect_refused(error_code code, std::string const& reason) {
    auto loaded = load();
    ASSERT_FALSE(loaded) << reason;
    EXPECT_EQ(loaded.error().code, code) << loaded.error().message;
    EXPECT_THAT(loaded.error().message, HasSubstr(reason));
    EXPECT_THAT(loaded.error().message, HasSubstr(directory_.path().string() + "/tokenizer"));
  }
  void expect_malformed(std::string const& reason) {
    expect_refused(error_code::malformed_input, reason);
  }
  void expect_unsupported(std::string const& reason) {
    expect_refused(error_code::unsupported, reason);
  }
  test::scratch_directory directory_;
};

}  // namespace ferry::deepseek
