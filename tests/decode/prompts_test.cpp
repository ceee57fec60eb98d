// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <prompts.hpp>

#include "files/safetensors_writer.hpp"
#include "files/scratch_directory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ferry::decode {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(prompts, unescape_what_json_escapes) {
  EXPECT_EQ(unescape("plain").value(), "plain");
  EXPECT_EQ(unescape("").value(), "");
  EXPECT_EQ(unescape(R"(a\nb\tc\r\b\f\"\\\/)").value(), "a\nb\tc\r\b\f\"\\/");
  EXPECT_EQ(unescape(R"(\\n)").value(), "\\n");
  EXPECT_EQ(unescape(R"(\u0041\u00e9\u20AC\ud83d\ude00)").value(), "A\u00e9\u20ac\U0001F600");
  EXPECT_EQ(unescape(R"(\u0000x)").value(), std::string("\0x", 2));
}

TEST(prompts, leave_bare_quotes_and_any_bytes_alone) {
  EXPECT_EQ(unescape("\"Yes,\" he said.").value(), "\"Yes,\" he said.");
  EXPECT_EQ(unescape("\xff\xc3").value(), "\xff\xc3");
}

TEST(prompts, refuse_escapes_that_are_none) {
  for (auto const* line : {"ab\\", "ab\\x41", "ab\\u12", "ab\\u12g4", "ab\\ud83d", "ab\\ud83dx",
                           "ab\\ud83d\\n", "ab\\ude00", "ab\\ud83d\\ud83d", "ab\\u+123"}) {
    auto text = unescape(line);
    ASSERT_FALSE(text) << line;
    EXPECT_EQ(text.error().code, error_code::malformed_input);
    EXPECT_THAT(text.error().message, HasSubstr("column 3")) << line;
  }
}

TEST(prompts, parse_ids_between_spaces_and_commas) {
  EXPECT_THAT(parse_ids("0 17 4", 18).value(), ElementsAre(0, 17, 4));
  EXPECT_THAT(parse_ids("  1,2 ,\t3\n", 18).value(), ElementsAre(1, 2, 3));
  EXPECT_THAT(parse_ids("", 18).value(), ElementsAre());
  for (auto const* text : {"18", "-1", "x", "1x", "1.5", "99999999999999999999", "0x1"}) {
    auto ids = parse_ids(text, 18);
    ASSERT_FALSE(ids) << text;
    EXPECT_EQ(ids.error().code, error_code::invalid_argument);
    EXPECT_THAT(ids.error().message, HasSubstr(std::string("\"") + text + "\" is no id in 0..17"));
  }
}

class prompt_files : public testing::Test {
 protected:
  prompt_files() {
    config_.vocab_size = 1536;
    config_.max_position_embeddings = 512;
    options_.model = FERRY_DEMO_MODEL;
  }
  auto collect(std::string_view file) {
    test::write_file(directory_ / "prompts.txt", file);
    options_.prompts_file = directory_ / "prompts.txt";
    return collect_prompts(options_, config_, tokenizer_);
  }
  void expect_refused(error_code code, std::string const& reason) {
    auto prompts = collect_prompts(options_, config_, tokenizer_);
    ASSERT_FALSE(prompts) << reason;
    EXPECT_EQ(prompts.error().code, code);
    EXPECT_THAT(prompts.error().message, HasSubstr(reason));
  }
  test::scratch_directory directory_;
  options options_;
  deepseek::model_config config_;
  std::optional<deepseek::tokenizer> tokenizer_ =
      deepseek::tokenizer::load(FERRY_DEMO_MODEL).value();
};

TEST_F(prompt_files, come_one_a_line_after_the_begin_token) {
  options_.prompts = {"Sir Thomas was"};
  options_.token_ids = {"5 6"};
  auto prompts = collect("She had been\r\n\nShe had\\u0020been").value();
  EXPECT_THAT(prompts, ElementsAre(ElementsAre(0, 86, 334, 717, 301, 297, 330),
                                   ElementsAre(0, 1319, 368, 504), ElementsAre(0),
                                   ElementsAre(0, 1319, 368, 504), ElementsAre(5, 6)));
  EXPECT_EQ(collect("a\nb\n").value().size(), 4u);
}

TEST_F(prompt_files, need_something_on_every_line_where_no_token_is_added) {
  std::filesystem::copy_file(std::filesystem::path(FERRY_DEMO_MODEL) / "tokenizer.json",
                             directory_ / "tokenizer.json");
  test::write_file(directory_ / "tokenizer_config.json", R"({"add_bos_token": false})");
  tokenizer_ = deepseek::tokenizer::load(directory_.path()).value();
  options_.prompts = {"x"};
  auto refused = collect("a\n\nb\n");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, error_code::invalid_argument);
  EXPECT_THAT(refused.error().message, HasSubstr("prompts.txt: line 2 is empty"));
  EXPECT_THAT(collect("a\nb\n").value(), testing::SizeIs(3));
}

TEST_F(prompt_files, are_refused_by_name_and_line) {
  auto broken = collect("fine\nbro\\ken\n");
  EXPECT_EQ(broken.error().code, error_code::malformed_input);
  EXPECT_THAT(broken.error().message, HasSubstr("prompts.txt: line 2, column 4: \\k"));
  EXPECT_THAT(collect("").error().message, HasSubstr("prompts.txt: no prompt in it"));
  options_.prompts_file = directory_ / "absent";
  expect_refused(error_code::io, "absent");
  options_.prompts_file = directory_.path();
  expect_refused(error_code::io, "cannot be read");
}

TEST_F(prompt_files, need_a_tokenizer) {
  tokenizer_.reset();
  options_.prompts = {"x"};
  expect_refused(error_code::unsupported, "no tokenizer.json, so prompts must come as --token-ids");
}

TEST_F(prompt_files, must_fit_the_model) {
  options_.token_ids = {""};
  expect_refused(error_code::invalid_argument, "prompt 0 has no tokens");
  options_.token_ids = {"1 2 3", "1 2 3 4"};
  options_.max_new_tokens = 510;
  expect_refused(
      error_code::invalid_argument,
      "prompt 1: 4 tokens and --max-new-tokens 510 make 513 positions, more than the model's "
      "max_position_embeddings of 512");
  options_.token_ids = {"1 2 3"};
  EXPECT_TRUE(collect_prompts(options_, config_, tokenizer_));
  config_.vocab_size = 80;
  options_.token_ids.clear();
  options_.prompts = {"Sir Thomas was"};
  expect_refused(error_code::invalid_argument, "token 86 is not in the model's vocabulary of 80");
}

}  // namespace
}  // namespace ferry::decode
