// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Prefill and decode of one rank's sequences, in step with the other ranks.
#pragma once

#include "plan.hpp"
#include "step_runner.hpp"

#include <ferry/deepseek/model.hpp>
#include <ferry/deepseek/token_sampler.hpp>
#include <ferry/ferry.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

namespace ferry::decode {

/// A prompt and what has been added to it.
struct sequence {
  std::size_t prompt;  ///< its index among all prompts
  std::vector<std::int32_t> ids;
  std::size_t prompt_tokens;
  bool ended = false;
  /// Of all its rows of logits, bit by bit; 0 on a device other than the CPU, which keeps them.
  std::uint64_t logits_digest = 0;

  std::span<std::int32_t const> new_ids() const { return std::span(ids).subspan(prompt_tokens); }
};

/// Is told what happens while it happens.
class listener {
 public:
  virtual ~listener() = default;
  /// Whether it is to be told those, which a device may have to send.
  virtual bool wants_first_logits() const = 0;
  /// The logits of the first prompt's next position.
  virtual result<void> on_first_logits(std::span<float const> row) = 0;
  virtual void on_token(sequence const& s, std::int32_t id) = 0;
  virtual void on_prefill_step(int done, int steps) = 0;
  virtual void on_decode_step(int done, int steps) = 0;
};

/// A decode step, as this rank saw it.
struct step_time {
  double seconds;
  int tokens;
};

struct phase_numbers {
  std::int64_t tokens = 0;
  double seconds = 0;
};

struct end_rule {
  int max_new_tokens;
  std::vector<std::int32_t> eos_ids;  ///< empty: only the number of tokens ends a sequence
};

class decoder {
 public:
  /// `choice`: on the model's device, with a slot for each sequence.
  /// Lifetime borrows all but its sequences and choice
  decoder(step_runner& steps, group const& ranks, plan const& sizes, deepseek::token_sampler choice,
          std::vector<sequence> sequences, end_rule rule, listener& told);

  /// Runs all prompts through the model and chooses each sequence's first new token. Collective.
  result<void> prefill();
  /// Adds the other tokens, one a step to each sequence that has not ended. Collective.
  result<void> decode();

  /// Called after each decode step, on every rank.
  void between_steps(std::function<result<void>()> call) { between_steps_ = std::move(call); }

  std::vector<sequence> const& sequences() const { return sequences_; }
  phase_numbers const& prefilled() const { return prefilled_; }
  phase_numbers const& decoded() const { return decoded_; }
  std::vector<step_time> const& steps() const { return steps_; }

 private:
  struct batch {
    std::vector<std::int32_t> ids, slots, positions;
  };

  void add(std::size_t slot, std::size_t position);
  result<void> run_step(bool is_decode);
  sequence& sequence_of(std::size_t row);
  bool goes_on(std::size_t row);
  result<void> take_row(std::size_t row, deepseek::chosen_token const& chosen);
  result<void> show_first(matrix<float const> logits);
  void take_digests(matrix<float const> logits);
  result<bool> anyone_goes_on() const;

  step_runner& runner_;
  group const& ranks_;
  plan sizes_;
  deepseek::token_sampler choice_;
  std::vector<sequence> sequences_;
  end_rule rule_;
  listener& told_;
  std::function<result<void>()> between_steps_;

  batch batch_;
  std::vector<float> first_logits_;
  phase_numbers prefilled_, decoded_;
  std::vector<step_time> steps_;
};

}  // namespace ferry::decode
