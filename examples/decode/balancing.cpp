// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "balancing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string_view>

namespace ferry::decode {
namespace {

/// Steps that saved windows count as one.
constexpr std::int64_t steps_of_reading = 16;
/// Tokens of each rank whose choices are saved.
constexpr std::int64_t most_samples = 4096;

/// Of each decode step.
constexpr int tokens_of_step = 4;
/// What a rebalancer may go by.
constexpr placement_policy policies[] = {placement_policy::incremental, placement_policy::permute,
                                         placement_policy::local, placement_policy::replicate,
                                         placement_policy::hierarchical};

template <class T>
bool parse_number(std::string_view text, T& to) {
  auto [stop, trouble] = std::from_chars(text.data(), text.data() + text.size(), to);
  return trouble == std::errc() && stop == text.data() + text.size();
}

}  // namespace

result<void> parse_rebalance(std::string const& text, balance_options& to) {
  std::string_view rest = text;
  while (!rest.empty()) {
    auto const part = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    auto const equals = part.find('=');
    auto const name = part.substr(0, equals);
    auto const value = equals == part.npos ? std::string_view() : part.substr(equals + 1);
    bool good = false;
    if (name == "every") good = parse_number(value, to.every) && to.every >= 1;
    if (name == "min-gain") good = parse_number(value, to.min_gain) && to.min_gain >= 0;
    if (name == "bytes-per-step")
      good = parse_number(value, to.bytes_per_step) && to.bytes_per_step >= 8;
    if (name == "policy") {
      auto const policy = placement_policy_of(value);
      good = policy &&
             std::find(std::begin(policies), std::end(policies), *policy) != std::end(policies);
      if (good) to.policy = *policy;
    }
    if (!good)
      return error{error_code::invalid_argument,
                   fmt::format("\"{}\" is none of every=N (1 or more), min-gain=X (0 or more), "
                               "bytes-per-step=N (8 or more) and "
                               "policy=incremental|permute|local|replicate|hierarchical",
                               part)};
  }
  if (to.every == 0) return error{error_code::invalid_argument, "every=N is missing"};
  to.rebalance = text;
  return {};
}

int sampled_tokens(balance_options const& options) {
  bool const local = options.every > 0 && options.policy == placement_policy::local;
  return local || options.loads_file ? tokens_of_step : 0;
}

result<balancing> balancing::make(deepseek::model& model, group const& ranks,
                                  balance_options const& options) {
  balancing b(model, ranks, options);
  exchange* const ep = model.expert_exchange();
  if (ep == nullptr) {
    if (options.every == 0 && !options.loads_file) return b;
    return error{error_code::invalid_state,
                 "--rebalance or --save-loads for a model of which no layer has experts"};
  }
  placement const& where = model.experts_at();
  if (options.every > 0) {
    // A layer may change as a whole.
    int most = 1;
    for (int r = 0; r < ranks.size(); ++r) most = std::max(most, where.slots_of(r));
    result<std::unique_ptr<expert_store>> store = model.store_of_experts(most);
    FERRY_CHECK(ranks.agree(store ? result<void>{} : result<void>{store.error()}));
    b.store_ = std::move(*store);
    FERRY_TRY(rebalancer made,
              rebalancer::make(*ep, *b.store_, where,
                               {.every = options.every,
                                .policy = options.policy,
                                .min_gain = options.min_gain,
                                .migrate = {.bytes_per_step = options.bytes_per_step,
                                            .replicas = options.replicas}}));
    b.keeps_.emplace(std::move(made));
  }
  FERRY_TRY(b.meter_, load_meter::make(*ep));
  // As the meter does, this leaves out what was there before.
  if (sampled_tokens(options) > 0) FERRY_CHECK(ep->sampled_choices());
  FERRY_TRY(b.window_, load_window::make(where.num_layers, where.num_experts));
  if (options.loads_file) {
    FERRY_TRY(b.sampler_, trace_sampler::make(where.num_layers, ep->options().topk, most_samples));
  }
  return b;
}

placement const& balancing::present() const {
  return keeps_ ? keeps_->present() : model_->experts_at();
}

result<void> balancing::read(placement const& where) {
  FERRY_TRY(counted_loads loads, meter_->read(*model_->expert_exchange(), where));
  if (loads.choices() == 0) return {};
  FERRY_CHECK(window_->add_step(loads.experts));
  if (total_.ranks.empty()) {
    total_ = std::move(loads);
    return {};
  }
  for (std::size_t i = 0; i < total_.ranks.size(); ++i) total_.ranks[i] += loads.ranks[i];
  for (std::size_t i = 0; i < total_.experts.size(); ++i) total_.experts[i] += loads.experts[i];
  return {};
}

result<void> balancing::after_step() {
  if (!meter_) return {};
  ++steps_;
  trace_sampler* const samples = sampler_ ? &*sampler_ : nullptr;
  if (samples && !keeps_) FERRY_CHECK(offer_samples(*model_->expert_exchange(), *samples));
  if (keeps_) {
    placement const before = keeps_->present();
    FERRY_CHECK(keeps_->after_step(samples));
    // What was counted belongs to the experts that were there.
    if (!(keeps_->present() == before)) FERRY_CHECK(read(before));
  }
  return options_.loads_file && steps_ % steps_of_reading == 0 ? read(present()) : result<void>{};
}

result<balance_report> balancing::finish() {
  balance_report r;
  if (!meter_) return r;
  FERRY_CHECK(read(present()));
  if (options_.loads_file) FERRY_CHECK(save_loads());
  if (keeps_) {
    FERRY_CHECK(keeps_->finish());
    r.before = keeps_->first();
    r.after = keeps_->last();
    r.moved = keeps_->counters();
    return r;
  }
  if (total_.ranks.empty()) return r;
  placement const& where = present();
  int const topk = model_->config().num_experts_per_tok;
  std::int64_t const tokens = total_.choices() / (std::int64_t{where.num_layers} * topk);
  FERRY_TRY(double const floor, floor_of(tokens, topk, where.num_experts, where.num_ranks));
  r.before = balance_reading{steps_, total_.max_over_mean(), total_.worst(), floor};
  return r;
}

/// The windows of all ranks are the same; each sampled its own tokens.
result<void> balancing::save_loads() {
  FERRY_TRY(routing_trace trace, gather_samples(ranks_, sampler_->sample()));
  if (ranks_.rank() != 0) return {};
  load_file file;
  file.windows.push_back(*window_);
  if (trace.num_tokens > 0) file.sample = std::move(trace);
  return ferry::save_loads(*options_.loads_file, file);
}

}  // namespace ferry::decode
