// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// What is to be continued, as text and as ids.
#pragma once

#include "options.hpp"

#include <ferry/deepseek/model_config.hpp>
#include <ferry/deepseek/tokenizer.hpp>
#include <ferry/result.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ferry::decode {

/// The text that a line with JSON string escapes stands for. A quotation mark may stand bare.
/// Errors   malformed_input naming the column of an escape that is none
result<std::string> unescape(std::string_view line);

/// Ids separated by spaces or commas.
/// Errors   invalid_argument a word that is no id below `vocab_size`
result<std::vector<std::int32_t>> parse_ids(std::string_view text, int vocab_size);

/// The ids of every prompt: those of --prompt, then the file's, one a line, then --token-ids. Text
/// gets the special tokens that the tokenizer puts before every text; ids get nothing. An empty
/// line is the prompt of these tokens alone. Errors   unsupported text without a tokenizer;
/// invalid_argument a prompt without tokens (naming
///          the line), an id
///          beyond the vocabulary, a prompt that leaves no room for the new tokens; io,
///          malformed_input the file
result<std::vector<std::vector<std::int32_t>>> collect_prompts(
    options const& o, deepseek::model_config const& config,
    std::optional<deepseek::tokenizer> const& tokenizer);

}  // namespace ferry::decode
