// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Prefill and decode of one rank's sequences, in step with the other ranks.
#pragma once

#include "plan.hpp"
#include "sampler.hpp"
#include "step_runner.hpp"

#include <ferry/deepseek/model.hpp>
#include <ferry/ferry.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ferry::decode {

/// A prompt and what has been added to it.
struct sequence {
  std::size_t prompt;  ///< its index among all prompts
  std::vector<std::int32_t> ids;
  std::size_t prompt_tokens;
  sampler choice;
  bool ended = false;
  std::uint64_t logits_digest = 0xCBF29CE484222325u;  ///< of all its rows of logits, bit by bit

  std::span<std::int32_t const> new_ids() const { return std::span(ids).subspan(prompt_tokens); }
};

/// Is told what happens while it happens.
class listener {
 public:
  virtual ~listener() = default;
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
  /// Lifetime borrows all but its sequences
  decoder(step_runner& steps, group const& ranks, plan const& sizes, int vocab_size,
          std::vector<sequence> sequences, end_rule rule, listener& told);

  /// Runs all prompts through the model and chooses each sequence's first new token. Collective.
  result<void> prefill();
  /// Adds the other tokens, one a step to each sequence that has not ended. Collective.
  result<void> decode();

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
  result<void> take_row(std::size_t row);
  result<bool> anyone_goes_on() const;

  step_runner& runner_;
  group const& ranks_;
  plan sizes_;
  std::int64_t vocab_size_;
  std::vector<sequence> sequences_;
  end_rule rule_;
  listener& told_;

  batch batch_;
  std::vector<float> logits_;
  phase_numbers prefilled_, decoded_;
  std::vector<step_time> steps_;
};

}  // namespace ferry::decode
