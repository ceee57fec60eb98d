// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/balance/apply_placement.hpp>
#include <ferry/deepseek/model.hpp>
#include <ferry/exec/cpu/code_level.hpp>

#include "base/fail.hpp"
#include "deepseek/host_experts.hpp"
#include "deepseek/model_state.hpp"
#include "exec/capture_record.hpp"

#include <algorithm>
#include <new>
#include <optional>
#include <vector>

namespace ferry::deepseek {

void model_observer::hidden(int, matrix<float const>) {}
void model_observer::attended(int, matrix<float const>) {}
void model_observer::routed(int, matrix<std::int32_t const>, matrix<float const>) {}
void model_observer::normalised(matrix<float const>) {}

namespace {

result<void> validate(model_options const& o) {
  struct {
    char const* name;
    int value;
  } const sizes[] = {{"max_tokens", o.max_tokens},
                     {"max_sequences", o.max_sequences},
                     {"max_positions", o.max_positions}};
  for (auto const& size : sizes) {
    if (size.value < 1) {
      return fail(error_code::invalid_argument, "{} {} must be at least 1", size.name, size.value);
    }
  }
  if (o.microbatches < 1 || o.microbatches > 32) {
    return fail(error_code::invalid_argument, "{} microbatches; 1 to 32 are possible",
                o.microbatches);
  }
  if (o.products == product_kernels::vendor && o.where.kind() == device_kind::cpu) {
    return fail(error_code::unsupported, "a vendor's products on the CPU: there is none");
  }
  if (o.microbatches > 1 && o.where.kind() != device_kind::cpu) {
    return fail(error_code::unsupported, "{} microbatches on {}; a step is split on the CPU alone",
                o.microbatches, o.where.name());
  }
  if (o.compute != dtype::f32 && o.compute != dtype::bf16) {
    return fail(error_code::invalid_argument, "a model computes in f32 or bf16, not in {}",
                to_string(o.compute));
  }
  return {};
}

exchange_options exchange_options_of(model_config const& config, model_options const& o,
                                     placement const& where) {
  exchange_options e;
  e.num_experts = config.n_routed_experts;
  e.topk = config.num_experts_per_tok;
  e.hidden = config.hidden_size;
  e.max_tokens = o.max_tokens;
  e.expert_slots = where.num_slots;
  e.layers = where.num_layers;
  e.sampled_tokens = o.sampled_tokens;
  e.tokens = dtype::f32;
  e.wire = o.wire;
  // Its kernels read both flavours, and so the same logits come out of all devices.
  e.fp8 = fp8_flavour::either;
  e.expert_rows = dtype::f32;
  e.combine_wire = o.combine_wire;
  e.output = dtype::f32;
  e.layout = o.layout;
  e.reduction = o.reduction;
  e.round_tokens = o.round_tokens;
  // Layers take turns, so that no layer waits until all have read the one before.
  e.num_microbatches = 2 * o.microbatches;
  return e;
}

/// Returns  the own error, or invalid_state naming the lowest rank that has one. The group stays
///          whole: another model may be loaded. Collective.
result<void> all_have_loaded(group const& ranks, result<void> const& mine) {
  std::byte const failed[] = {static_cast<std::byte>(!mine)};
  FERRY_TRY(std::vector<bytes> const all, ranks.all_gather(failed));
  FERRY_CHECK(mine);
  for (std::size_t r = 0; r < all.size(); ++r)
    if (all[r].size() != 1 || all[r][0] != std::byte{0})
      return fail(error_code::invalid_state, "rank {} could not load its part of the model", r);
  return {};
}

bool has_moe_layer(model_config const& config) {
  return moe_layers_before(config, config.num_layers) > 0;
}

}  // namespace

result<void> model::state::load() {
  weight_reader const reader(weights, config);
  FERRY_TRY(embedding,
            reader.tensor("model.embed_tokens.weight", {config.vocab_size, config.hidden_size}));
  FERRY_TRY(turning, rope::make(rope_options_of(config), options.max_positions));
  layer_reader const layer_source(reader, config, options, {where, ranks.rank()}, common_weights);
  for (int i = 0; i < config.num_layers; ++i) {
    FERRY_TRY(model_layer layer, layer_source.layer(i));
    layers.push_back(std::move(layer));
  }
  FERRY_TRY(norm, reader.vector_of("model.norm.weight", config.hidden_size));
  FERRY_TRY(head, layer_source.head());
  return {};
}

result<void> model::state::make_buffers() {
  auto const tokens = static_cast<std::size_t>(options.max_tokens);
  auto const row = static_cast<std::size_t>(config.hidden_size);
  std::size_t common = 0;
  std::size_t moe = 0;
  for (model_layer const& layer : layers) {
    common = std::max(common, layer.attention.scratch_size(options.max_positions));
    if (layer.moe) {
      moe = std::max(moe, layer.moe->scratch_size());
    } else {
      common = std::max(common, layer.dense.scratch_size());
    }
    FERRY_TRY(latent_cache cache, latent_cache::make(options.max_sequences, options.max_positions,
                                                     layer.attention.shape().cached_columns()));
    caches.push_back(std::move(cache));
  }
  for (int i = 0; i < options.microbatches; ++i) {
    auto b = std::make_unique<model_batch>();
    for (auto* words : {&b->ids, &b->sequences, &b->positions}) words->resize(tokens);
    for (auto* rows : {&b->hidden, &b->normalised, &b->attended}) rows->resize(tokens * row);
    b->scratch.resize(common);
    if (moe > 0)
      b->moe_work =
          moe_workspace(gate_rule::of(config), config.hidden_size, options.max_tokens, moe);
    microbatches.push_back(std::move(b));
  }
  return {};
}

void model::state::make_slots() {
  auto const slots = static_cast<std::size_t>(options.max_sequences);
  lengths.resize(slots);
  next_lengths.resize(slots);
  seen_in.resize(slots);
  seen_by.resize(slots);
}

result<void> model::state::admit_token(token_batch const& batch, std::size_t i,
                                       std::size_t microbatch) {
  if (batch.ids[i] < 0 || batch.ids[i] >= config.vocab_size) {
    return fail(error_code::invalid_argument, "token id {} in a vocabulary of {}", batch.ids[i],
                config.vocab_size);
  }
  if (batch.sequences[i] < 0 || batch.sequences[i] >= options.max_sequences) {
    return fail(error_code::invalid_argument, "sequence {}, max_sequences is {}",
                batch.sequences[i], options.max_sequences);
  }
  auto const slot = static_cast<std::size_t>(batch.sequences[i]);
  int const position = batch.positions[i];
  if (position < 0 || position >= options.max_positions) {
    return fail(error_code::invalid_argument, "position {} of sequence {}, max_positions is {}",
                position, slot, options.max_positions);
  }
  bool const again = seen_in[slot] == batches;
  if (again && seen_by[slot] != microbatch) {
    return fail(error_code::invalid_argument,
                "sequence {} has tokens in microbatches {} and {} of one step", slot, seen_by[slot],
                microbatch);
  }
  if (position > next_lengths[slot] || (again && position != next_lengths[slot])) {
    return fail(error_code::invalid_argument, "position {} of sequence {} comes after {}", position,
                slot, next_lengths[slot] - 1);
  }
  seen_in[slot] = batches;
  seen_by[slot] = microbatch;
  next_lengths[slot] = position + 1;
  return {};
}

result<void> model::state::admit(std::span<token_batch const> all) {
  if (all.size() > static_cast<std::size_t>(options.microbatches)) {
    return fail(error_code::invalid_argument, "{} batches for {} microbatches", all.size(),
                options.microbatches);
  }
  next_lengths = lengths;
  ++batches;
  for (std::size_t m = 0; m < all.size(); ++m) {
    token_batch const& batch = all[m];
    std::size_t const n = batch.ids.size();
    if (batch.sequences.size() != n || batch.positions.size() != n) {
      return fail(error_code::invalid_argument, "{} token ids with {} sequences and {} positions",
                  n, batch.sequences.size(), batch.positions.size());
    }
    if (n > static_cast<std::size_t>(options.max_tokens)) {
      return fail(error_code::invalid_argument, "{} tokens, max_tokens is {}", n,
                  options.max_tokens);
    }
    for (std::size_t i = 0; i < n; ++i) FERRY_CHECK(admit_token(batch, i, m));
  }
  std::swap(lengths, next_lengths);
  for (std::size_t m = 0; m < microbatches.size(); ++m) {
    model_batch& b = *microbatches[m];
    token_batch const batch = m < all.size() ? all[m] : token_batch{};
    std::copy(batch.ids.begin(), batch.ids.end(), b.ids.begin());
    std::copy(batch.sequences.begin(), batch.sequences.end(), b.sequences.begin());
    std::copy(batch.positions.begin(), batch.positions.end(), b.positions.begin());
    b.count = static_cast<std::int32_t>(batch.ids.size());
  }
  return {};
}

result<void> model::state::embed(std::span<std::int32_t const> ids, matrix<float> to) const {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    FERRY_CHECK(widen(embedding, std::int64_t{ids[i]} * config.hidden_size, config.hidden_size,
                      to[static_cast<std::int64_t>(i)]));
  }
  return {};
}

model::model(std::unique_ptr<state> s) : state_(std::move(s)) {}
model::model(model&&) noexcept = default;
model& model::operator=(model&&) noexcept = default;
model::~model() = default;

result<model> model::load(checkpoint const& weights, model_config const& config, group const& ranks,
                          model_options const& options) {
  FERRY_CHECK(validate(options));
  FERRY_CHECK(chosen_code_level());
  try {
    auto s = std::make_unique<state>(weights, config, ranks, options);
    if (has_moe_layer(config)) {
      FERRY_TRY(s->where, experts_of(config, options, ranks.size()));
    }
    if (options.where.kind() == device_kind::cpu) {
      result<void> loaded = s->load();
      if (loaded) loaded = s->make_buffers();
      FERRY_CHECK(all_have_loaded(ranks, loaded));
      if (options.share_weights) FERRY_CHECK(s->common_weights.share(ranks));
    } else {
      FERRY_TRY(s->elsewhere, device_model::load(weights, config, ranks, options, s->where));
    }
    s->make_slots();
    if (has_moe_layer(config)) {
      FERRY_TRY(
          ferry::exchange made,
          make_exchange(ranks, options.where, exchange_options_of(config, options, s->where)));
      s->exchange.emplace(std::move(made));
      FERRY_CHECK(apply_placement(*s->exchange, s->where, options.replicas));
    }
    for (std::size_t i = 0; i < s->microbatches.size(); ++i)
      s->make_stages(*s->microbatches[i], static_cast<int>(i));
    return model(std::move(s));
  } catch (std::bad_alloc const&) {
    return fail(error_code::out_of_memory, "no memory for the model's weights or buffers");
  }
}

result<void> model::state::admit_forward(queue const& q, token_batch const& batch) {
  FERRY_TRY(bool const captured, q.is_capturing());
  if (captured || capture_record::current()) {
    return fail(error_code::invalid_state,
                "forward cannot be captured: a replay would run the same tokens again");
  }
  if (!(q.where() == options.where)) {
    return fail(error_code::invalid_argument, "a queue of {} for a model on {}", q.where().name(),
                options.where.name());
  }
  return admit({&batch, 1});
}

result<void> model::forward(queue& q, token_batch const& batch, matrix<float> logits) {
  state& s = *state_;
  auto const n = static_cast<std::int64_t>(batch.ids.size());
  if (logits.data != nullptr && (logits.rows != n || logits.columns != s.config.vocab_size)) {
    return fail(error_code::invalid_argument, "logits of {} by {} for {} tokens of {} ids",
                logits.rows, logits.columns, n, s.config.vocab_size);
  }
  FERRY_CHECK(s.admit_forward(q, batch));
  if (s.elsewhere) {
    return s.elsewhere->forward(q, s.exchange ? &*s.exchange : nullptr, batch, {logits},
                                s.observer);
  }
  model_batch& b = *s.microbatches[0];
  b.wanted = logits;
  for (stage const& one : s.lists[0]) {
    if (s.watcher != nullptr) FERRY_CHECK(s.watcher->before(q, 0, one));
    FERRY_CHECK(one.put(q));
    if (s.watcher != nullptr) FERRY_CHECK(s.watcher->after(q, 0, one));
  }
  result<void> const done = q.is_asynchronous() ? wait(q) : result<void>{};
  b.wanted = {};
  return done;
}

result<matrix<float const>> model::forward(queue& q, token_batch const& batch) {
  state& s = *state_;
  if (s.elsewhere) {
    FERRY_CHECK(s.admit_forward(q, batch));
    FERRY_CHECK(s.elsewhere->forward(q, s.exchange ? &*s.exchange : nullptr, batch, {.stay = true},
                                     s.observer));
    return s.elsewhere->logits();
  }
  std::vector<float>& own = s.microbatches[0]->own_logits;
  std::int64_t const vocabulary = s.config.vocab_size;
  own.resize(static_cast<std::size_t>(s.options.max_tokens * vocabulary));
  matrix<float> const to = dense(own.data(), std::ssize(batch.ids), vocabulary);
  FERRY_CHECK(forward(q, batch, to));
  return matrix<float const>(to);
}

result<void> model::bring(std::span<token_batch const> batches) {
  state& s = *state_;
  if (s.elsewhere) {
    return fail(error_code::unsupported, "a step on {} has no stages; on the CPU it has",
                s.options.where.name());
  }
  auto const vocabulary = static_cast<std::size_t>(s.config.vocab_size);
  FERRY_CHECK(capture_record::refuses("bringing a batch"));
  FERRY_CHECK(s.admit(batches));
  for (auto const& b : s.microbatches) {
    b->own_logits.resize(static_cast<std::size_t>(s.options.max_tokens) * vocabulary);
    b->wanted = dense(b->own_logits.data(), b->count, std::int64_t{s.config.vocab_size});
  }
  return {};
}

std::span<stage_list const> model::stages() const {
  return state_->lists;
}

matrix<float const> model::logits(int microbatch) const {
  model_batch const& b = *state_->microbatches.at(static_cast<std::size_t>(microbatch));
  return dense<float const>(b.own_logits.data(), b.count, std::int64_t{state_->config.vocab_size});
}

result<void> model::wait(queue& compute) {
  state& s = *state_;
  if (!s.exchange) return compute.wait(2 * s.ranks.timeout());
  for (int i = 0; i < s.exchange->num_microbatches(); ++i)
    FERRY_CHECK(s.exchange->microbatch(i).wait(compute));
  return {};
}

exchange_counters model::counters() const {
  return state_->exchange ? state_->exchange->counters() : exchange_counters{};
}
char const* model::products() const {
  return state_->elsewhere ? state_->elsewhere->products() : "oneDNN";
}
ferry::exchange* model::expert_exchange() {
  return state_->exchange ? &*state_->exchange : nullptr;
}
result<std::unique_ptr<expert_store>> model::store_of_experts(int spare_slots) {
  state& s = *state_;
  if (!s.exchange) return fail(error_code::invalid_state, "no layer of the model has experts");
  if (spare_slots < 1)
    return fail(error_code::invalid_argument, "{} spare slots; 1 or more", spare_slots);
  expert_form const form{s.config.hidden_size, s.config.moe_intermediate_size, s.options.compute};
  if (s.elsewhere) return s.elsewhere->store_of_experts(form, spare_slots);
  try {
    std::vector<moe_layer*> layers_with_experts;
    for (model_layer& l : s.layers)
      if (l.moe) layers_with_experts.push_back(&*l.moe);
    return std::unique_ptr<expert_store>(
        std::make_unique<host_experts>(std::move(layers_with_experts), form, spare_slots));
  } catch (std::bad_alloc const&) {
    return fail(error_code::out_of_memory, "no memory for {} spare slots of {} bytes", spare_slots,
                form.bytes());
  }
}
placement const& model::experts_at() const {
  return state_->where;
}
model_times const& model::times() const {
  return state_->times;
}
model_config const& model::config() const {
  return state_->config;
}
model_options const& model::options() const {
  return state_->options;
}
int model::length(int sequence) const {
  return state_->lengths.at(static_cast<std::size_t>(sequence));
}
std::span<float const> model::cached(int layer, int sequence, int position) const {
  if (state_->elsewhere) return {};
  latent_cache const& cache = state_->caches.at(static_cast<std::size_t>(layer));
  return {cache.row(sequence, position), static_cast<std::size_t>(cache.columns())};
}
void model::observe(model_observer* observer) {
  state_->observer = observer;
}
void model::watch(stage_watcher* watcher) {
  state_->watcher = watcher;
}

}  // namespace ferry::deepseek
