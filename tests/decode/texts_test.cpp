// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <texts.hpp>

#include <gtest/gtest.h>

#include <vector>

namespace ferry::decode {
namespace {

TEST(texts, show_an_id_that_no_token_has_and_go_on) {
  auto tokenizer = deepseek::tokenizer::load(FERRY_DEMO_MODEL).value();
  auto ids = tokenizer.encode("She had been", false).value();
  EXPECT_EQ(text_of(tokenizer, ids), "She had been");
  ids.insert(ids.begin() + 1, tokenizer.num_ids() + 5);
  EXPECT_EQ(text_of(tokenizer, ids), "She\uFFFD had been");
  deepseek::text_stream stream(tokenizer);
  std::string text;
  for (auto id : ids) text += text_after(stream, id);
  EXPECT_EQ(text + stream.finish(), "She\uFFFD had been");
}

TEST(texts, show_half_a_character_before_such_an_id) {
  auto tokenizer = deepseek::tokenizer::load(FERRY_DEMO_MODEL).value();
  auto half = tokenizer.encode("\xE2\x82", false).value();
  half.push_back(tokenizer.num_ids());
  EXPECT_EQ(text_of(tokenizer, half), "\uFFFD\uFFFD");
}

}  // namespace
}  // namespace ferry::decode
