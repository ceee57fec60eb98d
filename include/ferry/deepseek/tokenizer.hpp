// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Text to token ids and back, from a Hugging Face tokenizer.json with byte-level byte pair
/// encoding.
#pragma once

#include <ferry/base/result.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ferry::deepseek {

/// The tokenizer of a model directory.
///
/// Understood: models of type BPE over bytes, with or without ignore_merges; no normalizer; the
/// pre-tokenizers ByteLevel, Split, Digits, Punctuation and sequences of them that end in
/// ByteLevel; added tokens with all their flags; the post-processors ByteLevel, TemplateProcessing
/// and sequences of them. Whatever else would change ids is refused by name, never passed over.
/// `truncation` and `padding` are left to the caller.
/// Lifetime copies share one immutable tokenizer, which any number of threads may use
/// Example  examples/decode
class tokenizer {
 public:
  /// Reads tokenizer.json, and tokenizer_config.json where there is one.
  /// `add_bos_token` and `add_eos_token` of the latter, where they are set, have the last word
  /// about the special tokens around a text: false leaves none on that side; otherwise the
  /// post-processor says.
  /// Errors   io the file is missing or unreadable; malformed_input naming file, place and reason;
  ///          unsupported naming what the file asks for; out_of_memory
  static result<tokenizer> load(std::filesystem::path const& directory);

  /// The ids of `text`. Added tokens, special ones too, are found in the text itself; with
  /// `add_special` the ids that belong before and after every text are put there too.
  /// Any bytes will do: those that are not UTF-8 are encoded one by one, apart from their
  /// neighbours, so that `decode_bytes` gives back what came in.
  /// Errors   invalid_argument a text of 2 GiB or more, a byte for which the vocabulary has no
  /// token,
  ///          a text on which a split rule exceeds its limits
  result<std::vector<std::int32_t>> encode(std::string_view text, bool add_special) const;

  /// The text of `ids`, always valid UTF-8: what is not becomes U+FFFD once all bytes are joined.
  /// Errors   invalid_argument an id that no token has
  result<std::string> decode(std::span<std::int32_t const> ids, bool skip_special = false) const;

  /// The bytes of `ids`, as they are.
  /// Errors   invalid_argument an id that no token has
  result<std::string> decode_bytes(std::span<std::int32_t const> ids,
                                   bool skip_special = false) const;

  /// The first of the ids that `add_special` puts before a text; none if it puts none.
  std::optional<std::int32_t> bos_id() const;
  /// All of them.
  /// Lifetime valid while a copy of the tokenizer is
  std::span<std::int32_t const> leading_ids() const;
  /// The token that ends a text, by tokenizer_config.json's eos_token.
  std::optional<std::int32_t> eos_id() const;
  /// One more than the largest id of a token.
  std::int32_t num_ids() const;
  bool is_special(std::int32_t id) const;

 private:
  struct state;
  explicit tokenizer(std::shared_ptr<state const> s);
  std::shared_ptr<state const> state_;
};

/// Decodes ids as they come: what `push` and the final `finish` return, joined, is `decode` of all
/// the ids. A character whose bytes are spread over several tokens is held back until it is whole.
/// Lifetime keeps its tokenizer alive; one thread at a time
class text_stream {
 public:
  explicit text_stream(tokenizer source, bool skip_special = true);

  /// The text that `id` completes, often nothing.
  /// Errors   invalid_argument an id that no token has; the stream stays as it was
  result<std::string> push(std::int32_t id);

  /// What was held back, as U+FFFD, and the stream is as new.
  std::string finish();

 private:
  tokenizer source_;
  bool skip_special_;
  std::string held_back_;
};

}  // namespace ferry::deepseek
