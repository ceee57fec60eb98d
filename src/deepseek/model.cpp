// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/deepseek/model.hpp>
#include <ferry/deepseek/rms_norm.hpp>
#include <ferry/exec/cpu/code_level.hpp>

#include "base/fail.hpp"
#include "deepseek/device_model.hpp"
#include "deepseek/model_layers.hpp"
#include "deepseek/row_loops.hpp"
#include "deepseek/stopwatch.hpp"

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

template <class T>
matrix<T const> read_only(matrix<T> m) {
  return {m.data, m.rows, m.columns, m.row_stride};
}

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
  if (o.compute != dtype::f32 && o.compute != dtype::bf16) {
    return fail(error_code::invalid_argument, "a model computes in f32 or bf16, not in {}",
                to_string(o.compute));
  }
  return {};
}

exchange_options exchange_options_of(model_config const& config, model_options const& o) {
  exchange_options e;
  e.num_experts = config.n_routed_experts;
  e.topk = config.num_experts_per_tok;
  e.hidden = config.hidden_size;
  e.max_tokens = o.max_tokens;
  e.tokens = dtype::f32;
  e.wire = o.wire;
  e.expert_rows = dtype::f32;
  e.combine_wire = o.combine_wire;
  e.output = dtype::f32;
  e.layout = o.layout;
  e.reduction = o.reduction;
  e.round_tokens = o.round_tokens;
  // Layers take turns, so that no layer waits until all have read the one before.
  e.num_microbatches = 2;
  return e;
}

bool has_moe_layer(model_config const& config) {
  for (int i = 0; i < config.num_layers; ++i) {
    if (config.is_moe_layer(i)) return true;
  }
  return false;
}

}  // namespace

struct model::state {
  state(checkpoint const& weights_, model_config const& config_, group const& ranks_,
        model_options const& options_)
      : weights(weights_), config(config_), ranks(ranks_), options(options_) {}

  result<void> load();
  result<void> make_buffers();
  void make_slots();
  result<void> admit(token_batch const& batch);
  result<void> embed(std::span<std::int32_t const> ids, matrix<float> to) const;
  result<void> run_layer(queue& q, int index, token_batch const& batch, matrix<float> x);

  checkpoint weights;
  model_config config;
  group ranks;
  model_options options;

  tensor_view embedding;
  rope turning;
  std::vector<model_layer> layers;
  std::vector<latent_cache> caches;  // per layer
  std::vector<float> norm;
  linear head;
  std::optional<ferry::exchange> exchange;
  std::unique_ptr<device_model> elsewhere;  // on another device than the CPU, instead of all this

  std::vector<int> lengths;            // per cache slot
  std::vector<int> next_lengths;       // the same while a batch is looked at
  std::vector<std::uint64_t> seen_in;  // per cache slot, the last batch with a token of it
  std::uint64_t batches = 0;

  std::vector<float> hidden;      // [max_tokens, hidden]
  std::vector<float> normalised;  // [max_tokens, hidden]
  std::vector<float> attended;    // [max_tokens, hidden]
  std::vector<float> scratch;     // of attention and dense layers
  moe_workspace moe_work;

  model_times times;
  model_observer* observer = nullptr;
};

result<void> model::state::load() {
  weight_reader const reader(weights, config);
  FERRY_TRY(embedding,
            reader.tensor("model.embed_tokens.weight", {config.vocab_size, config.hidden_size}));
  FERRY_TRY(turning, rope::make(rope_options_of(config), options.max_positions));
  auto const own = expert_range::of_rank(ranks.rank(), ranks.size(), config.n_routed_experts);
  layer_reader const layer_source(reader, config, options, own);
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
  hidden.resize(tokens * row);
  normalised.resize(tokens * row);
  attended.resize(tokens * row);
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
  scratch.resize(common);
  if (moe > 0) {
    moe_work = moe_workspace(gate_rule::of(config), config.hidden_size, options.max_tokens, moe);
  }
  return {};
}

void model::state::make_slots() {
  auto const slots = static_cast<std::size_t>(options.max_sequences);
  lengths.resize(slots);
  next_lengths.resize(slots);
  seen_in.resize(slots);
}

/// Checks the whole batch before anything is changed.
result<void> model::state::admit(token_batch const& batch) {
  std::size_t const n = batch.ids.size();
  if (batch.sequences.size() != n || batch.positions.size() != n) {
    return fail(error_code::invalid_argument, "{} token ids with {} sequences and {} positions", n,
                batch.sequences.size(), batch.positions.size());
  }
  if (n > static_cast<std::size_t>(options.max_tokens)) {
    return fail(error_code::invalid_argument, "{} tokens, max_tokens is {}", n, options.max_tokens);
  }
  next_lengths = lengths;
  ++batches;
  for (std::size_t i = 0; i < n; ++i) {
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
    if (position > next_lengths[slot] || (again && position != next_lengths[slot])) {
      return fail(error_code::invalid_argument, "position {} of sequence {} comes after {}",
                  position, slot, next_lengths[slot] - 1);
    }
    seen_in[slot] = batches;
    next_lengths[slot] = position + 1;
  }
  std::swap(lengths, next_lengths);
  return {};
}

result<void> model::state::embed(std::span<std::int32_t const> ids, matrix<float> to) const {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    FERRY_CHECK(widen(embedding, std::int64_t{ids[i]} * config.hidden_size, config.hidden_size,
                      to[static_cast<std::int64_t>(i)]));
  }
  return {};
}

result<void> model::state::run_layer(queue& q, int index, token_batch const& batch,
                                     matrix<float> x) {
  model_layer const& layer = layers[static_cast<std::size_t>(index)];
  auto const epsilon = static_cast<float>(config.rms_norm_eps);
  matrix<float> const normal = dense(normalised.data(), x.rows, x.columns);
  matrix<float> const block = dense(attended.data(), x.rows, x.columns);
  stopwatch watch;
  rms_norm(read_only(x), layer.attention_norm, epsilon, normal);
  FERRY_CHECK(layer.attention.apply({read_only(normal), batch.sequences, batch.positions}, turning,
                                    caches[static_cast<std::size_t>(index)], block, scratch));
  auto const add = [&] { loops().add({block, x}); };
  add();
  if (observer != nullptr) observer->attended(index, read_only(block));
  rms_norm(read_only(x), layer.ffn_norm, epsilon, normal);
  watch.lap(times.attention);
  if (layer.moe) {
    microbatch& slot = exchange->microbatch(index % exchange->num_microbatches());
    FERRY_CHECK(layer.moe->apply(q, slot, read_only(normal), x, moe_work, &times.moe));
    if (observer != nullptr) {
      observer->routed(index, read_only(moe_work.choices(x.rows)),
                       read_only(moe_work.weights(x.rows)));
    }
  } else {
    FERRY_CHECK(layer.dense.apply(read_only(normal), block, scratch));
    add();
    watch.lap(times.dense);
  }
  if (observer != nullptr) observer->hidden(index, read_only(x));
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
    if (options.where.kind() == device_kind::cpu) {
      FERRY_CHECK(s->load());
      FERRY_CHECK(s->make_buffers());
    } else {
      FERRY_TRY(s->elsewhere, device_model::load(weights, config, ranks, options));
    }
    s->make_slots();
    if (has_moe_layer(config)) {
      FERRY_TRY(ferry::exchange made,
                make_exchange(ranks, options.where, exchange_options_of(config, options)));
      s->exchange.emplace(std::move(made));
    }
    return model(std::move(s));
  } catch (std::bad_alloc const&) {
    return fail(error_code::out_of_memory, "no memory for the model's weights or buffers");
  }
}

result<void> model::forward(queue& q, token_batch const& batch, matrix<float> logits) {
  state& s = *state_;
  auto const n = static_cast<std::int64_t>(batch.ids.size());
  if (logits.data != nullptr && (logits.rows != n || logits.columns != s.config.vocab_size)) {
    return fail(error_code::invalid_argument, "logits of {} by {} for {} tokens of {} ids",
                logits.rows, logits.columns, n, s.config.vocab_size);
  }
  FERRY_CHECK(s.admit(batch));
  if (s.elsewhere) {
    return s.elsewhere->forward(q, s.exchange ? &*s.exchange : nullptr, batch, logits, s.observer);
  }
  stopwatch watch;
  matrix<float> const x = dense(s.hidden.data(), n, std::int64_t{s.config.hidden_size});
  FERRY_CHECK(s.embed(batch.ids, x));
  if (s.observer != nullptr) s.observer->hidden(-1, read_only(x));
  watch.lap(s.times.embedding);
  for (int i = 0; i < s.config.num_layers; ++i) FERRY_CHECK(s.run_layer(q, i, batch, x));
  if (logits.data == nullptr && s.observer == nullptr) return {};
  stopwatch last;
  matrix<float> const normal = dense(s.normalised.data(), n, x.columns);
  rms_norm(read_only(x), s.norm, static_cast<float>(s.config.rms_norm_eps), normal);
  if (s.observer != nullptr) s.observer->normalised(read_only(normal));
  if (logits.data != nullptr) FERRY_CHECK(s.head.apply(read_only(normal), logits));
  last.lap(s.times.head);
  return {};
}

exchange_counters model::counters() const {
  return state_->exchange ? state_->exchange->counters() : exchange_counters{};
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

}  // namespace ferry::deepseek
