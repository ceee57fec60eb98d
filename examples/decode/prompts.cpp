// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "prompts.hpp"

#include <fmt/format.h>

#include <charconv>
#include <fstream>
#include <iterator>

namespace ferry::decode {
namespace {

using ids = std::vector<std::int32_t>;

error malformed(std::size_t column, std::string_view why) {
  return {error_code::malformed_input, fmt::format("column {}: {}", column + 1, why)};
}

void append_utf8(std::string& text, std::uint32_t point) {
  auto tail = [&](int shift) { text += static_cast<char>(0x80 | ((point >> shift) & 0x3F)); };
  if (point < 0x80) {
    text += static_cast<char>(point);
  } else if (point < 0x800) {
    text += static_cast<char>(0xC0 | (point >> 6));
    tail(0);
  } else if (point < 0x10000) {
    text += static_cast<char>(0xE0 | (point >> 12));
    tail(6), tail(0);
  } else {
    text += static_cast<char>(0xF0 | (point >> 18));
    tail(12), tail(6), tail(0);
  }
}

/// The four hexadecimal digits of "\uXXXX" at `at`, the backslash's place.
result<std::uint32_t> unit_at(std::string_view line, std::size_t at) {
  std::uint32_t unit = 0;
  if (at + 6 > line.size() || line.substr(at, 2) != "\\u")
    return malformed(at, "\\u needs four hexadecimal digits");
  auto const* end = line.data() + at + 6;
  auto [stop, trouble] = std::from_chars(line.data() + at + 2, end, unit, 16);
  if (trouble != std::errc() || stop != end)
    return malformed(at, "\\u needs four hexadecimal digits");
  return unit;
}

/// Reads the "\uXXXX", or the pair of them, at `at`, and returns the characters used.
result<std::size_t> unescape_unicode(std::string_view line, std::size_t at, std::string& text) {
  FERRY_TRY(auto unit, unit_at(line, at));
  if (unit < 0xD800 || unit > 0xDFFF) {
    append_utf8(text, unit);
    return std::size_t{6};
  }
  auto low = unit_at(line, at + 6);
  if (unit > 0xDBFF || !low || *low < 0xDC00 || *low > 0xDFFF)
    return malformed(at, "half of a surrogate pair");
  append_utf8(text, 0x10000 + ((unit - 0xD800) << 10) + (*low - 0xDC00));
  return std::size_t{12};
}

result<std::vector<std::string>> read_lines(std::filesystem::path const& file) {
  std::ifstream in(file, std::ios::binary);
  std::error_code ignored;
  if (!in || std::filesystem::is_directory(file, ignored))
    return error{error_code::io, fmt::format("{}: cannot be read", file.string())};
  std::vector<std::string> texts;
  std::size_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.ends_with('\r')) line.pop_back();
    auto text = unescape(line);
    if (!text)
      return error{text.error().code,
                   fmt::format("{}: line {}, {}", file.string(), number, text.error().message)};
    texts.push_back(std::move(*text));
  }
  if (in.bad()) return error{error_code::io, fmt::format("{}: cannot be read", file.string())};
  return texts;
}

result<ids> encode(deepseek::tokenizer const& tokenizer, std::string const& text) {
  FERRY_TRY(auto encoded, tokenizer.encode(text, false));
  auto leading = tokenizer.leading_ids();
  encoded.insert(encoded.begin(), leading.begin(), leading.end());
  return encoded;
}

result<void> check(ids const& prompt, std::size_t index, options const& o,
                   deepseek::model_config const& config) {
  if (prompt.empty())
    return error{error_code::invalid_argument, fmt::format("prompt {} has no tokens", index)};
  for (auto id : prompt)
    if (id < 0 || id >= config.vocab_size)
      return error{error_code::invalid_argument,
                   fmt::format("prompt {}: token {} is not in the model's vocabulary of {}", index,
                               id, config.vocab_size)};
  // The last token is chosen, but not fed back.
  auto positions = prompt.size() + static_cast<std::size_t>(o.max_new_tokens) - 1;
  if (positions > static_cast<std::size_t>(config.max_position_embeddings))
    return error{
        error_code::invalid_argument,
        fmt::format("prompt {}: {} tokens and --max-new-tokens {} make {} positions, more than the "
                    "model's max_position_embeddings of {}",
                    index, prompt.size(), o.max_new_tokens, positions,
                    config.max_position_embeddings)};
  return {};
}

}  // namespace

result<std::string> unescape(std::string_view line) {
  static constexpr std::string_view names = "\"\\/bfnrt";
  static constexpr std::string_view values = "\"\\/\b\f\n\r\t";
  std::string text;
  for (std::size_t i = 0; i < line.size();) {
    if (line[i] != '\\') {
      text += line[i++];
      continue;
    }
    if (i + 1 == line.size()) return malformed(i, "a lone backslash ends the line");
    if (line[i + 1] == 'u') {
      FERRY_TRY(auto used, unescape_unicode(line, i, text));
      i += used;
      continue;
    }
    auto known = names.find(line[i + 1]);
    if (known == std::string_view::npos)
      return malformed(i, fmt::format("\\{} is no JSON escape", line[i + 1]));
    text += values[known];
    i += 2;
  }
  return text;
}

result<ids> parse_ids(std::string_view text, int vocab_size) {
  constexpr std::string_view separators = " \t\r\n,";
  ids parsed;
  for (std::size_t at = 0;;) {
    at = text.find_first_not_of(separators, at);
    if (at == std::string_view::npos) return parsed;
    auto word = text.substr(at, text.find_first_of(separators, at) - at);
    std::int32_t id = -1;
    auto [stop, trouble] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (trouble != std::errc() || stop != word.data() + word.size() || id < 0 || id >= vocab_size)
      return error{error_code::invalid_argument,
                   fmt::format("--token-ids: \"{}\" is no id in 0..{}", word, vocab_size - 1)};
    parsed.push_back(id);
    at += word.size();
  }
}

result<std::vector<ids>> collect_prompts(options const& o, deepseek::model_config const& config,
                                         std::optional<deepseek::tokenizer> const& tokenizer) {
  auto texts = o.prompts;
  if (o.prompts_file) {
    FERRY_TRY(auto lines, read_lines(*o.prompts_file));
    texts.insert(texts.end(), std::move_iterator(lines.begin()), std::move_iterator(lines.end()));
  }
  if (!texts.empty() && !tokenizer)
    return error{error_code::unsupported,
                 fmt::format("{} has no tokenizer.json, so prompts must come as --token-ids",
                             o.model.string())};
  std::vector<ids> prompts;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    FERRY_TRY(auto encoded, encode(*tokenizer, texts[i]));
    if (encoded.empty() && i >= o.prompts.size())
      return error{error_code::invalid_argument,
                   fmt::format("{}: line {} is empty, and the tokenizer adds no begin token: there "
                               "is nothing to go on from",
                               o.prompts_file->string(), i - o.prompts.size() + 1)};
    prompts.push_back(std::move(encoded));
  }
  for (auto const& text : o.token_ids) {
    FERRY_TRY(auto parsed, parse_ids(text, config.vocab_size));
    prompts.push_back(std::move(parsed));
  }
  if (prompts.empty())
    return error{error_code::invalid_argument,
                 fmt::format("{}: no prompt in it", o.prompts_file->string())};
  for (std::size_t i = 0; i < prompts.size(); ++i) FERRY_CHECK(check(prompts[i], i, o, config));
  return prompts;
}

}  // namespace ferry::decode
