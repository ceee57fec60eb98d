// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// What a person sees while a run goes on, and the file of logits.
#pragma once

#include "decoder.hpp"
#include "options.hpp"
#include "report.hpp"

#include <ferry/deepseek/tokenizer.hpp>

#include <chrono>
#include <fstream>
#include <optional>
#include <string>

namespace ferry::decode {

/// Whether all that went to stdout until now has arrived.
/// Errors   io
result<void> check_shown();

/// The first prompt's text appears token by token; the others' when all are complete, in prompt
/// order, because a person cannot read several texts that grow at once. Progress goes to stderr.
/// Only rank 0 shows anything.
class console final : public listener {
 public:
  /// Errors   io the file of logits, or of numbers, cannot be written
  static result<console> open(options const& o, std::optional<deepseek::tokenizer> tokenizer,
                              int rank);

  bool wants_first_logits() const override { return logits_.has_value(); }
  result<void> on_first_logits(std::span<float const> row) override;
  void on_token(sequence const& s, std::int32_t id) override;
  void on_prefill_step(int done, int steps) override;
  void on_decode_step(int done, int steps) override;

  /// One line of news, on stderr.
  void say(std::string const& news);
  /// Ends the first text, then shows the others.
  void show_other_texts(std::vector<std::vector<std::int32_t>> const& prompts, report const& r,
                        int num_ranks);
  /// Errors   io
  result<void> finish();

 private:
  console() = default;
  void begin_text(std::size_t prompt, int rank, std::span<std::int32_t const> ids);
  std::string text_of(std::span<std::int32_t const> ids) const;
  void end_first_text();
  bool is_time();

  bool shows_ = false;
  bool text_is_progress_ = false;  ///< whoever watches sees the text itself grow
  bool first_text_open_ = false;
  std::optional<deepseek::tokenizer> tokenizer_;
  std::optional<deepseek::text_stream> stream_;
  std::optional<std::ofstream> logits_;
  std::string logits_name_;
  std::chrono::steady_clock::time_point last_news_ = std::chrono::steady_clock::now();
};

}  // namespace ferry::decode
