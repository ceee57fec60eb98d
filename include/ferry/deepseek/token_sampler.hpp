// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Choosing next tokens where the logits lie.
#pragma once

#include <ferry/base/matrix.hpp>
#include <ferry/base/result.hpp>
#include <ferry/deepseek/kernels/next_token.hpp>
#include <ferry/exec/device.hpp>
#include <ferry/exec/queue.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>

namespace ferry::deepseek {

struct sampling {
  int slots = 1;          ///< texts that go on at a time
  int max_rows = 1;       ///< most rows of logits of one call
  float temperature = 0;  ///< 0: the largest logit, the lowest id among equals
  std::uint64_t seed = 0;
  std::chrono::milliseconds timeout{120'000};  ///< of the device's answer
};

/// Chooses for several texts, by one kernel, so that the ids are the same bit for bit on every
/// device that computes the same logits. Of a device's logits only ids come to the host.
class token_sampler {
 public:
  /// Errors   invalid_argument a number below 1, or a temperature that is negative or not finite;
  ///          out_of_memory, device
  static result<token_sampler> make(device const& where, sampling const& how);

  /// Slot `slot` begins text number `text`: its draws are those of the seed and that number,
  /// whatever other texts there are. Every slot begins with the text of its own number. Order    no
  /// draw of the slot's last text stands on a queue still Errors   invalid_argument no such slot;
  /// device; timeout
  result<void> begin(queue& q, int slot, std::uint64_t text);

  /// Chooses, and waits for what was chosen.
  /// Shapes   logits [rows, vocabulary] in memory of `where`; slots [rows]: the text that a row
  /// goes
  ///          on with, below 0 for none, no text twice. What was chosen for row i is at i, and
  ///          means nothing where there is no text.
  /// Order    whatever computes the logits stands on `q`, or has run
  /// Lifetime of what is returned: until the next call
  /// Errors   invalid_argument too many rows, a slot that is not there, a queue of another device;
  ///          device; timeout
  result<std::span<chosen_token const>> choose(queue& q, matrix<float const> logits,
                                               std::span<std::int32_t const> slots);

  token_sampler(token_sampler&&) noexcept;
  token_sampler& operator=(token_sampler&&) noexcept;
  ~token_sampler();

  struct state;

 private:
  explicit token_sampler(std::unique_ptr<state> s);
  std::unique_ptr<state> state_;
};

/// The id that was chosen.
/// Errors   malformed_input naming a token whose logit is NaN, or that is without bounds: the
///          weights, or the precision, are not fit for this
result<std::int32_t> id_of(chosen_token const& chosen);

}  // namespace ferry::deepseek
