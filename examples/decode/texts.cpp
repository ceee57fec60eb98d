// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "texts.hpp"

namespace ferry::decode {

std::string text_after(deepseek::text_stream& stream, std::int32_t id) {
  if (auto text = stream.push(id)) return *std::move(text);
  // Half a character before it can no longer become whole.
  return stream.finish() + "\xEF\xBF\xBD";
}

std::string text_of(deepseek::tokenizer const& tokenizer, std::span<std::int32_t const> ids) {
  deepseek::text_stream stream(tokenizer, true);
  std::string text;
  for (auto id : ids) text += text_after(stream, id);
  return text += stream.finish();
}

}  // namespace ferry::decode
