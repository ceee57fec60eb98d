// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/deepseek/token_sampler.hpp>

#include "base/fail.hpp"
#include "deepseek/strip_device.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

namespace ferry::deepseek {

// On the CPU `states` and `chosen` are all there is.
struct token_sampler::state {
  sampling how;
  device where;
  std::vector<std::uint64_t> states;  // as they were begun
  std::vector<chosen_token> chosen;

  std::optional<strip_device> on;
  device_array<std::uint64_t> states_there;
  device_array<std::int32_t> slots_there;
  device_array<chosen_token> chosen_there;
  device_memory slots_sent;  // pinned

  result<void> allocate();
  result<void> check(queue const& q, matrix<float const> logits,
                     std::span<std::int32_t const> slots) const;
  result<void> choose_there(queue& q, matrix<float const> logits,
                            std::span<std::int32_t const> slots);
};

result<void> token_sampler::state::allocate() {
  states.resize(static_cast<std::size_t>(how.slots));
  for (std::size_t i = 0; i < states.size(); ++i) states[i] = first_state(how.seed, i);
  chosen.resize(static_cast<std::size_t>(how.max_rows));
  if (where.kind() == device_kind::cpu) return {};
  FERRY_TRY(on, strip_device::open(where));
  FERRY_TRY(states_there, on->copy_of<std::uint64_t>(states));
  FERRY_TRY(slots_there, on->array<std::int32_t>(how.max_rows));
  FERRY_TRY(chosen_there, on->array<chosen_token>(how.max_rows));
  FERRY_TRY(slots_sent, where.allocate(memory_kind::pinned, static_cast<std::size_t>(how.max_rows) *
                                                                sizeof(std::int32_t)));
  return {};
}

result<void> token_sampler::state::check(queue const& q, matrix<float const> logits,
                                         std::span<std::int32_t const> slots) const {
  if (!(q.where() == where)) {
    return fail(error_code::invalid_argument, "a queue of {} for a sampler on {}", q.where().name(),
                where.name());
  }
  if (logits.rows > how.max_rows || std::ssize(slots) != logits.rows || logits.columns < 1) {
    return fail(error_code::invalid_argument,
                "{} rows of {} logits for {} slots; the sampler takes up to {} rows", logits.rows,
                logits.columns, slots.size(), how.max_rows);
  }
  auto const wrong =
      std::find_if(slots.begin(), slots.end(), [&](std::int32_t s) { return s >= how.slots; });
  if (wrong != slots.end()) {
    return fail(error_code::invalid_argument, "slot {} of a sampler of {}", *wrong, how.slots);
  }
  return {};
}

result<void> token_sampler::state::choose_there(queue& q, matrix<float const> logits,
                                                std::span<std::int32_t const> slots) {
  std::copy(slots.begin(), slots.end(), reinterpret_cast<std::int32_t*>(slots_sent.data()));
  FERRY_CHECK(q.copy(slots_there.data(), slots_sent.data(), slots.size_bytes()));
  FERRY_CHECK(on->run(q, next_token{.logits = logits,
                                    .slots = slots_there.data(),
                                    .states = states_there.data(),
                                    .temperature = how.temperature,
                                    .chosen = chosen_there.data()}));
  FERRY_CHECK(q.copy(chosen.data(), chosen_there.data(), slots.size() * sizeof(chosen_token)));
  return q.wait(how.timeout);
}

result<token_sampler> token_sampler::make(device const& where, sampling const& how) {
  if (how.slots < 1 || how.max_rows < 1) {
    return fail(error_code::invalid_argument, "a sampler of {} slots and {} rows; at least 1 each",
                how.slots, how.max_rows);
  }
  if (!(how.temperature >= 0) || std::isinf(how.temperature)) {
    return fail(error_code::invalid_argument, "a temperature of {}", how.temperature);
  }
  auto s = std::make_unique<state>();
  s->how = how;
  s->where = where;
  FERRY_CHECK(s->allocate());
  return token_sampler(std::move(s));
}

result<void> token_sampler::begin(queue& q, int slot, std::uint64_t text) {
  state& s = *state_;
  if (slot < 0 || slot >= s.how.slots) {
    return fail(error_code::invalid_argument, "slot {} of a sampler of {}", slot, s.how.slots);
  }
  std::uint64_t& first = s.states[static_cast<std::size_t>(slot)];
  first = first_state(s.how.seed, text);
  if (!s.on) return {};
  FERRY_CHECK(q.copy(s.states_there.data() + slot, &first, sizeof first));
  return q.wait(s.how.timeout);
}

result<std::span<chosen_token const>> token_sampler::choose(queue& q, matrix<float const> logits,
                                                            std::span<std::int32_t const> slots) {
  state& s = *state_;
  FERRY_CHECK(s.check(q, logits, slots));
  if (logits.rows > 0 && s.on) {
    FERRY_CHECK(s.choose_there(q, logits, slots));
  } else if (logits.rows > 0) {
    FERRY_CHECK(q.wait(s.how.timeout));
    loops().next(next_token{.logits = logits,
                            .slots = slots.data(),
                            .states = s.states.data(),
                            .temperature = s.how.temperature,
                            .chosen = s.chosen.data()});
  }
  return std::span<chosen_token const>(s.chosen).first(slots.size());
}

token_sampler::token_sampler(std::unique_ptr<state> s) : state_(std::move(s)) {}
token_sampler::token_sampler(token_sampler&&) noexcept = default;
token_sampler& token_sampler::operator=(token_sampler&&) noexcept = default;
token_sampler::~token_sampler() = default;

result<std::int32_t> id_of(chosen_token const& chosen) {
  switch (chosen.what) {
    case chosen_token::state::chosen: return chosen.id;
    case chosen_token::state::not_a_number:
      return fail(error_code::malformed_input, "the logit of token {} is NaN", chosen.id);
    case chosen_token::state::without_bounds: break;
  }
  return fail(error_code::malformed_input, "the largest logit, of token {}, is infinite",
              chosen.id);
}

}  // namespace ferry::deepseek
