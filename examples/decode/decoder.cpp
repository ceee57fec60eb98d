// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "decoder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <utility>

namespace ferry::decode {
namespace {

/// Steps between two talks about who still has work: rare enough to cost nothing, and idle steps
/// after the last end are cheap.
constexpr int steps_between_talks = 8;

/// Takes a row into a digest (FNV-1a, by words): runs whose logits differ in a bit differ in it.
std::uint64_t digest_with(std::uint64_t digest, std::span<float const> row) {
  if (digest == 0) digest = 0xCBF29CE484222325u;
  for (float const x : row) digest = (digest ^ std::bit_cast<std::uint32_t>(x)) * 0x100000001B3u;
  return digest;
}

class stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace

decoder::decoder(step_runner& steps, group const& ranks, plan const& sizes,
                 deepseek::token_sampler choice, std::vector<sequence> sequences, end_rule rule,
                 listener& told)
    : runner_(steps),
      ranks_(ranks),
      sizes_(sizes),
      choice_(std::move(choice)),
      sequences_(std::move(sequences)),
      rule_(std::move(rule)),
      told_(told) {}

void decoder::add(std::size_t slot, std::size_t position) {
  batch_.ids.push_back(sequences_[slot].ids[position]);
  batch_.slots.push_back(static_cast<std::int32_t>(slot));
  batch_.positions.push_back(static_cast<std::int32_t>(position));
}

/// Runs the batch, takes its rows and empties it.
result<void> decoder::run_step(bool is_decode) {
  deepseek::token_batch const batch{
      .ids = batch_.ids, .sequences = batch_.slots, .positions = batch_.positions};
  FERRY_TRY(matrix<float const> const logits,
            is_decode ? runner_.run(batch) : runner_.forward(batch));
  if (told_.wants_first_logits()) FERRY_CHECK(show_first(logits));
  if (runner_.compute().where().kind() == device_kind::cpu) take_digests(logits);
  std::vector<std::int32_t> texts;
  for (std::size_t row = 0; row < batch_.ids.size(); ++row)
    texts.push_back(goes_on(row) ? batch_.slots[row] : -1);
  FERRY_TRY(auto const chosen, choice_.choose(runner_.compute(), logits, texts));
  for (std::size_t row = 0; row < batch_.ids.size(); ++row)
    if (texts[row] >= 0) FERRY_CHECK(take_row(row, chosen[row]));
  batch_ = {};
  return {};
}

sequence& decoder::sequence_of(std::size_t row) {
  return sequences_[static_cast<std::size_t>(batch_.slots[row])];
}

/// Within the prompt the next token is known.
bool decoder::goes_on(std::size_t row) {
  return static_cast<std::size_t>(batch_.positions[row]) + 1 == sequence_of(row).ids.size();
}

result<void> decoder::show_first(matrix<float const> logits) {
  for (std::size_t row = 0; row < batch_.ids.size(); ++row) {
    if (sequence_of(row).prompt != 0) continue;
    first_logits_.resize(static_cast<std::size_t>(logits.columns));
    queue& q = runner_.compute();
    FERRY_CHECK(q.copy(first_logits_.data(), logits[static_cast<std::int64_t>(row)],
                       first_logits_.size() * sizeof(float)));
    FERRY_CHECK(q.wait(ranks_.timeout()));
    FERRY_CHECK(told_.on_first_logits(first_logits_));
  }
  return {};
}

void decoder::take_digests(matrix<float const> logits) {
  for (std::size_t row = 0; row < batch_.ids.size(); ++row) {
    std::uint64_t& digest = sequence_of(row).logits_digest;
    digest = digest_with(
        digest, {logits[static_cast<std::int64_t>(row)], static_cast<std::size_t>(logits.columns)});
  }
}

result<void> decoder::take_row(std::size_t row, deepseek::chosen_token const& chosen) {
  sequence& s = sequence_of(row);
  auto const id = deepseek::id_of(chosen);
  if (!id)
    return error{id.error().code, fmt::format("prompt {}, position {}: {}", s.prompt,
                                              batch_.positions[row], id.error().message)};
  s.ids.push_back(*id);
  s.ended = std::ssize(s.new_ids()) == rule_.max_new_tokens ||
            std::find(rule_.eos_ids.begin(), rule_.eos_ids.end(), *id) != rule_.eos_ids.end();
  told_.on_token(s, *id);
  return {};
}

result<void> decoder::prefill() {
  FERRY_CHECK(ranks_.barrier());
  stopwatch clock;
  std::size_t slot = 0;
  std::size_t position = 0;
  for (int step = 0; step < sizes_.prefill_steps; ++step) {
    while (slot < sequences_.size() && std::ssize(batch_.ids) < sizes_.max_tokens) {
      add(slot, position);
      if (++position < sequences_[slot].prompt_tokens) continue;
      ++slot;
      position = 0;
    }
    prefilled_.tokens += std::ssize(batch_.ids);
    FERRY_CHECK(run_step(false));
    told_.on_prefill_step(step + 1, sizes_.prefill_steps);
  }
  prefilled_.seconds = clock.seconds();
  return {};
}

/// Collective.
result<bool> decoder::anyone_goes_on() const {
  bool mine =
      std::any_of(sequences_.begin(), sequences_.end(), [](sequence const& s) { return !s.ended; });
  std::array word = {static_cast<std::byte>(mine)};
  FERRY_TRY(auto all, ranks_.all_gather(word));
  return std::any_of(all.begin(), all.end(),
                     [](bytes const& b) { return !b.empty() && b[0] != std::byte{0}; });
}

result<void> decoder::decode() {
  stopwatch clock;
  int steps = rule_.max_new_tokens - 1;
  for (int step = 0; step < steps; ++step) {
    stopwatch step_clock;
    if (!rule_.eos_ids.empty() && step % steps_between_talks == 0) {
      FERRY_TRY(bool more, anyone_goes_on());
      if (!more) break;
    }
    for (std::size_t slot = 0; slot < sequences_.size(); ++slot)
      if (!sequences_[slot].ended) add(slot, sequences_[slot].ids.size() - 1);
    auto tokens = static_cast<int>(batch_.ids.size());
    FERRY_CHECK(run_step(true));
    if (between_steps_) FERRY_CHECK(between_steps_());
    steps_.push_back({step_clock.seconds(), tokens});
    decoded_.tokens += tokens;
    told_.on_decode_step(step + 1, steps);
  }
  decoded_.seconds = clock.seconds();
  return {};
}

}  // namespace ferry::decode
