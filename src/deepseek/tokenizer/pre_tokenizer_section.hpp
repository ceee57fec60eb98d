// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The pre_tokenizer section of a tokenizer.json.
#pragma once

#include <ferry/base/result.hpp>

#include "deepseek/tokenizer/json_place.hpp"
#include "deepseek/tokenizer/pre_tokenizer.hpp"

namespace ferry::deepseek {

/// Errors   malformed_input; unsupported a step other than Split, Digits, Punctuation, ByteLevel
/// and
///          Sequence, one after ByteLevel, or none at all
result<pre_tokenizer> read_pre_tokenizer(json_place const& section);

}  // namespace ferry::deepseek
