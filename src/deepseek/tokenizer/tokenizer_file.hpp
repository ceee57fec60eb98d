// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Reads tokenizer.json and tokenizer_config.json.
#pragma once

#include <ferry/base/result.hpp>

#include "deepseek/tokenizer/added_tokens.hpp"
#include "deepseek/tokenizer/byte_pair_encoding.hpp"
#include "deepseek/tokenizer/pre_tokenizer.hpp"
#include "deepseek/tokenizer/token_table.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

namespace ferry::deepseek {

/// What a tokenizer is made of.
struct tokenizer_parts {
  token_table tokens;
  byte_pair_encoding merging;
  pre_tokenizer splitting;
  added_tokens added;
  std::vector<std::int32_t> before, after;  ///< the special tokens around every text
  std::optional<std::int32_t> eos;
};

/// Errors   as tokenizer::load, but for out_of_memory: std::bad_alloc passes through
result<tokenizer_parts> read_tokenizer(std::filesystem::path const& directory);

}  // namespace ferry::deepseek
