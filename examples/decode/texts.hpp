// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Generated ids as text, whatever the ids are.
#pragma once

#include <ferry/deepseek/tokenizer.hpp>

#include <cstdint>
#include <span>
#include <string>

namespace ferry::decode {

/// As `stream.push`, but an id that no token has becomes U+FFFD: a model's output layer may have
/// more rows than its tokenizer has tokens, and a finished text must not be lost to one of them.
std::string text_after(deepseek::text_stream& stream, std::int32_t id);

/// The text of `ids` without special tokens, in the same way.
std::string text_of(deepseek::tokenizer const& tokenizer, std::span<std::int32_t const> ids);

}  // namespace ferry::decode
