// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/deepseek/tokenizer.hpp>

#include "base/fail.hpp"
#include "deepseek/tokenizer/tokenizer_file.hpp"
#include "files/utf8.hpp"

#include <algorithm>
#include <limits>
#include <new>
#include <utility>

namespace ferry::deepseek {

struct tokenizer::state {
  tokenizer_parts parts;
  result<void> encode_text(std::string_view text, std::vector<std::int32_t>& ids) const;
};

namespace {

// How many bytes at the front of `text` belong to no character.
std::size_t broken_prefix(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    auto front = front_of(text.substr(at));
    if (front.what == utf8_front::kind::character) break;
    at += front.bytes;
  }
  return at;
}

}  // namespace

// Text without added tokens. Rules about characters have nothing to say about bytes that are none.
result<void> tokenizer::state::encode_text(std::string_view text,
                                           std::vector<std::int32_t>& ids) const {
  auto merge = [&](std::string_view word) { return parts.merging.encode(word, ids); };
  while (!text.empty()) {
    auto valid = valid_prefix(text);
    FERRY_CHECK(parts.splitting.split(text.substr(0, valid), merge));
    text.remove_prefix(valid);
    auto broken = broken_prefix(text);
    for (char byte : text.substr(0, broken)) FERRY_CHECK(merge({&byte, 1}));
    text.remove_prefix(broken);
  }
  return {};
}

tokenizer::tokenizer(std::shared_ptr<state const> s) : state_(std::move(s)) {}

result<tokenizer> tokenizer::load(std::filesystem::path const& directory) try {
  FERRY_TRY(auto parts, read_tokenizer(directory));
  return tokenizer(std::make_shared<state const>(state{std::move(parts)}));
} catch (std::bad_alloc const&) {
  return fail(error_code::out_of_memory, "no memory for the tokenizer in {}", directory.string());
} catch (std::exception const& e) {
  return fail(error_code::internal, "the tokenizer in {}: {}", directory.string(), e.what());
}

result<std::vector<std::int32_t>> tokenizer::encode(std::string_view text, bool add_special) const
    try {
  constexpr auto longest = std::size_t{std::numeric_limits<std::int32_t>::max()};
  if (text.size() > longest)
    return fail(error_code::invalid_argument, "a text of {} bytes; the limit is {}", text.size(),
                longest);
  auto& parts = state_->parts;
  std::vector<std::int32_t> ids;
  if (add_special) ids = parts.before;
  FERRY_TRY(auto pieces, parts.added.split(text));
  for (auto& piece : pieces) {
    if (piece.id >= 0)
      ids.push_back(piece.id);
    else
      FERRY_CHECK(state_->encode_text(piece.text, ids));
  }
  if (add_special) ids.insert(ids.end(), parts.after.begin(), parts.after.end());
  return ids;
} catch (std::bad_alloc const&) {
  return fail(error_code::out_of_memory, "no memory to encode {} bytes", text.size());
}

result<std::string> tokenizer::decode_bytes(std::span<std::int32_t const> ids,
                                            bool skip_special) const try {
  auto& tokens = state_->parts.tokens;
  std::string bytes;
  for (auto id : ids) {
    if (!tokens.has(id))
      return fail(error_code::invalid_argument, "no token has id {}; ids end at {}", id,
                  tokens.num_ids() - 1);
    if (!skip_special || !tokens.is_special(id)) bytes += tokens.bytes(id);
  }
  return bytes;
} catch (std::bad_alloc const&) {
  return fail(error_code::out_of_memory, "no memory to decode {} tokens", ids.size());
}

result<std::string> tokenizer::decode(std::span<std::int32_t const> ids, bool skip_special) const {
  text_stream stream(*this, skip_special);
  std::string text;
  for (auto id : ids) {
    FERRY_TRY(auto more, stream.push(id));
    text += more;
  }
  return text += stream.finish();
}

std::optional<std::int32_t> tokenizer::bos_id() const {
  auto& before = state_->parts.before;
  return before.empty() ? std::nullopt : std::optional(before.front());
}

std::span<std::int32_t const> tokenizer::leading_ids() const {
  return state_->parts.before;
}

std::optional<std::int32_t> tokenizer::eos_id() const {
  return state_->parts.eos;
}

std::int32_t tokenizer::num_ids() const {
  return state_->parts.tokens.num_ids();
}

bool tokenizer::is_special(std::int32_t id) const {
  return state_->parts.tokens.is_special(id);
}

text_stream::text_stream(tokenizer source, bool skip_special)
    : source_(std::move(source)), skip_special_(skip_special) {}

result<std::string> text_stream::push(std::int32_t id) {
  FERRY_TRY(auto bytes, source_.decode_bytes({&id, 1}, skip_special_));
  held_back_ += bytes;
  std::string text;
  move_characters(held_back_, text);
  return text;
}

std::string text_stream::finish() {
  if (held_back_.empty()) return {};
  held_back_.clear();
  return std::string(replacement_character);
}

}  // namespace ferry::deepseek
