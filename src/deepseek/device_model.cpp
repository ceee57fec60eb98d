// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "deepseek/device_model.hpp"

#include "base/fail.hpp"
#include "deepseek/device_experts.hpp"

#include <algorithm>
#include <cstring>

namespace ferry::deepseek {
namespace {

result<ferry::wire> wire_of(tensor_view const& stored) {
  switch (stored.type) {
    case storage_type::f32: return wire::f32;
    case storage_type::bf16: return wire::bf16;
    case storage_type::f16: return wire::fp16;
    default:
      return fail(error_code::unsupported, "tensor {} is {}, where weights are BF16, F16 or F32",
                  stored.name, to_string(stored.type));
  }
}

/// An emulated device's library stands in for a vendor's, for tests: it has to be asked for.
result<void> choose_products(strip_device& on, model_options const& options) {
  if (options.products == product_kernels::portable) return {};
  bool const asked = options.products == product_kernels::vendor;
  if (!asked && on.where().kind() == device_kind::emulated) return {};
  result<void> const used = on.use_library(options.max_tokens);
  return used || asked || used.error().code != error_code::unsupported ? used : result<void>{};
}

}  // namespace

result<std::unique_ptr<device_model>> device_model::load(checkpoint const& weights,
                                                         model_config const& config,
                                                         group const& ranks,
                                                         model_options const& options,
                                                         placement const& where) {
  FERRY_TRY(strip_device on, strip_device::open(options.where));
  FERRY_CHECK(choose_products(on, options));
  std::unique_ptr<device_model> made(
      new device_model(std::move(on), config, options, ranks.timeout()));
  made->shape_ = attention_shape::of(config);
  made->rule_ = gate_rule::of(config);
  FERRY_CHECK(validate(made->rule_));
  FERRY_CHECK(made->load_weights(weights, {where, ranks.rank()}));
  FERRY_CHECK(made->make_buffers());
  return made;
}

result<void> device_model::load_weights(checkpoint const& weights, own_slots own) {
  weight_reader const reader(weights, config_);
  device_layer_reader const source(on_, reader, config_, options_, own);
  FERRY_TRY(tensor_view const table,
            reader.tensor("model.embed_tokens.weight", {config_.vocab_size, config_.hidden_size}));
  FERRY_TRY(embedding_format_, wire_of(table));
  embedding_row_bytes_ = std::ssize(table.data) / config_.vocab_size;
  FERRY_TRY(embedding_, on_.copy_of(table.data));
  FERRY_TRY(rope const turning, rope::make(rope_options_of(config_), options_.max_positions));
  auto const angles = static_cast<std::size_t>(turning.positions() * turning.dimensions());
  FERRY_TRY(angles_, on_.copy_of(std::span<float const>(turning.at(0), angles)));
  for (int i = 0; i < config_.num_layers; ++i) {
    FERRY_TRY(device_layer layer, source.layer(i));
    layers_.push_back(std::move(layer));
    FERRY_TRY(device_array<float> cache,
              on_.array<float>(std::int64_t{options_.max_sequences} * options_.max_positions *
                               shape_.cached_columns()));
    caches_.push_back(std::move(cache));
  }
  FERRY_TRY(norm_, source.vector_of("model.norm.weight", config_.hidden_size));
  FERRY_TRY(head_, source.head());
  return {};
}

result<std::unique_ptr<expert_store>> device_model::store_of_experts(expert_form const& form,
                                                                     int spare_slots) const {
  std::vector<device_moe const*> layers;
  for (device_layer const& l : layers_)
    if (l.moe) layers.push_back(&*l.moe);
  FERRY_TRY(auto made,
            device_experts::make(on_.where(), std::move(layers), form, spare_slots, timeout_));
  return std::unique_ptr<expert_store>(std::move(made));
}

result<void> device_model::make_buffers() {
  std::int64_t const n = round_up(std::int64_t{options_.max_tokens}, on_.library_rows());
  std::int64_t const heads = shape_.num_heads;
  std::int64_t const experts = config_.n_routed_experts;
  std::int64_t inner = 0;
  std::int64_t staged = head_.staging(n);
  for (device_layer const& l : layers_) {
    device_attention const& a = l.attention;
    staged = std::max({staged, a.input.staging(n), a.q_b.staging(n),
                       a.keys.staging(n, shape_.nope + shape_.rope),
                       a.values.staging(n, shape_.kv_lora_rank), a.output.staging(n)});
    device_mlp const* const part = l.moe ? (l.moe->shared ? &*l.moe->shared : nullptr) : &l.dense;
    if (part == nullptr) continue;
    inner = std::max(inner, part->gate_and_up.out());
    staged = std::max({staged, part->gate_and_up.staging(n), part->down.staging(n)});
  }
  struct {
    device_array<float>& to;
    std::int64_t size;
  } const all[] = {{at_.hidden, n * config_.hidden_size},
                   {at_.normalised, n * config_.hidden_size},
                   {at_.block, n * config_.hidden_size},
                   {at_.projected, n * layers_.at(0).attention.input.out()},
                   {at_.q, shape_.q_lora_rank > 0 ? n * shape_.query_columns() : 0},
                   {at_.queries, n * heads * shape_.cached_columns()},
                   {at_.attended, n * heads * shape_.kv_lora_rank},
                   {at_.values, n * heads * shape_.v},
                   {at_.scores, std::int64_t{on_.strips()} * options_.max_positions},
                   {at_.inner, n * inner},
                   {at_.gated, n * inner / 2},
                   {at_.logits, n * config_.vocab_size},
                   {at_.router_logits, n * experts},
                   {at_.weights, n * rule_.topk},
                   {at_.choice_scratch, on_.strips() * choose_experts::scratch_of(
                                                           rule_.num_experts, rule_.num_groups)}};
  for (auto const& one : all) {
    FERRY_TRY(one.to, on_.array<float>(one.size));
  }
  FERRY_TRY(at_.choices, on_.array<std::int32_t>(n * rule_.topk));
  FERRY_TRY(at_.step, on_.array<std::int32_t>(3 * n));
  FERRY_TRY(upload_, on_.where().allocate(memory_kind::pinned,
                                          static_cast<std::size_t>(3 * n) * sizeof(std::int32_t)));
  FERRY_TRY(at_.staging, make_staging(staged));
  return {};
}

result<device_model::staging_arrays> device_model::make_staging(std::int64_t elements) const {
  staging_arrays made;
  FERRY_TRY(made.values, on_.array<float>(elements));
  FERRY_TRY(made.codes, on_.array<bf16>(elements));
  made.elements = elements;
  return made;
}

/// Once: a layout's capacity does not change, and work that stands on a queue uses the buffers.
result<void> device_model::make_expert_buffers(std::int64_t capacity) {
  if (capacity == capacity_) return {};
  if (capacity_ >= 0) {
    return fail(error_code::internal, "a layout of {} positions has become one of {}", capacity_,
                capacity);
  }
  std::int64_t const width = config_.moe_intermediate_size;
  FERRY_TRY(at_.arrived, on_.array<float>(capacity * config_.hidden_size));
  FERRY_TRY(at_.expert_inner, on_.array<float>(capacity * 2 * width));
  FERRY_TRY(at_.expert_gated, on_.array<float>(capacity * width));
  FERRY_TRY(at_.expert_rows, on_.array<float>(capacity * config_.hidden_size));
  bool const changed = options_.compute == dtype::bf16 || options_.quantise_activations;
  std::int64_t const widest = std::max<std::int64_t>(config_.hidden_size, width);
  FERRY_TRY(at_.expert_staging, make_staging(changed ? capacity * widest : 0));
  capacity_ = capacity;
  return {};
}

/// The step's ids, sequences and positions into device memory.
result<void> device_model::bring(queue& q, token_batch const& batch) {
  auto* const to = reinterpret_cast<std::int32_t*>(upload_.data());
  auto const part = static_cast<std::size_t>(options_.max_tokens);
  std::copy(batch.ids.begin(), batch.ids.end(), to);
  std::copy(batch.sequences.begin(), batch.sequences.end(), to + part);
  std::copy(batch.positions.begin(), batch.positions.end(), to + 2 * part);
  tokens_ = std::ssize(batch.ids);
  return q.copy(at_.step.data(), to, 3 * part * sizeof *to);
}

result<void> device_model::embed(queue& q) {
  return on_.run(
      q, decode_rows{.format = embedding_format_,
                     .rows = embedding_.data(),
                     .row_stride = embedding_row_bytes_,
                     .index = ids(),
                     .to = dense(at_.hidden.data(), tokens_, std::int64_t{config_.hidden_size})});
}

result<void> device_model::normalise(queue& q, float const* from, std::int64_t stride,
                                     device_array<float> const& weight, std::int64_t columns,
                                     float* to) const {
  return on_.run(q, normalise_rows{{from, tokens_, columns, stride},
                                   weight.data(),
                                   static_cast<float>(config_.rms_norm_eps),
                                   {to, tokens_, columns, stride}});
}

/// Fills the cache's rows of these tokens, and their absorbed and rotated queries.
result<void> device_model::project(queue& q, device_attention const& a, float* cache) {
  attention_shape const& s = shape_;
  std::int64_t const projected = a.input.out();
  std::int64_t const cached = s.cached_columns();
  std::int64_t const q_columns = projected - cached;
  FERRY_CHECK(a.input.apply(on_, q,
                            {.x = at_.normalised.data(),
                             .x_stride = s.hidden,
                             .y = at_.projected.data(),
                             .y_stride = projected,
                             .rows = tokens_},
                            staging()));
  float const* queries = at_.projected.data();
  std::int64_t stride = projected;
  if (s.q_lora_rank > 0) {
    FERRY_CHECK(
        normalise(q, at_.projected.data(), projected, a.q_norm, q_columns, at_.projected.data()));
    queries = at_.q.data();
    stride = s.query_columns();
    FERRY_CHECK(a.q_b.apply(on_, q,
                            {.x = at_.projected.data(),
                             .x_stride = projected,
                             .y = at_.q.data(),
                             .y_stride = stride,
                             .rows = tokens_},
                            staging()));
  }
  std::int64_t const head = s.nope + s.rope;
  FERRY_CHECK(a.keys.apply(on_, q,
                           {.x = queries,
                            .x_stride = stride,
                            .x_group = head,
                            .y = at_.queries.data(),
                            .y_stride = s.num_heads * cached,
                            .y_group = cached,
                            .rows = tokens_},
                           staging()));
  FERRY_CHECK(on_.run(q, rotate_heads{.from = queries + s.nope,
                                      .from_token = stride,
                                      .from_head = head,
                                      .to = at_.queries.data() + s.kv_lora_rank,
                                      .to_token = s.num_heads * cached,
                                      .to_head = cached,
                                      .positions = positions(),
                                      .angles = angles_.data(),
                                      .dimensions = s.rope,
                                      .tokens = tokens_,
                                      .heads = s.num_heads}));
  return on_.run(q,
                 fill_cache{.from = {at_.projected.data() + q_columns, tokens_, cached, projected},
                            .weight = a.kv_norm.data(),
                            .epsilon = s.epsilon,
                            .sequences = sequences(),
                            .positions = positions(),
                            .angles = angles_.data(),
                            .latent = s.kv_lora_rank,
                            .dimensions = s.rope,
                            .cache = cache,
                            .sequence_stride = options_.max_positions * cached});
}

/// Attention of the normalised rows, into `block`.
result<void> device_model::attend_layer(queue& q, device_layer const& layer, float* cache) {
  attention_shape const& s = shape_;
  device_attention const& a = layer.attention;
  FERRY_CHECK(project(q, a, cache));
  FERRY_CHECK(on_.run(
      q, attend{.queries = at_.queries.data(),
                .cache = cache,
                .sequence_stride = std::int64_t{options_.max_positions} * s.cached_columns(),
                .sequences = sequences(),
                .positions = positions(),
                .tokens = tokens_,
                .heads = s.num_heads,
                .columns = s.cached_columns(),
                .latent = s.kv_lora_rank,
                .scale = s.softmax_scale,
                .scores = at_.scores.data(),
                .scores_stride = options_.max_positions,
                .out = at_.attended.data()}));
  std::int64_t const value_row = std::int64_t{s.num_heads} * s.v;
  FERRY_CHECK(a.values.apply(on_, q,
                             {.x = at_.attended.data(),
                              .x_stride = std::int64_t{s.num_heads} * s.kv_lora_rank,
                              .x_group = s.kv_lora_rank,
                              .y = at_.values.data(),
                              .y_stride = value_row,
                              .y_group = s.v,
                              .rows = tokens_},
                             staging()));
  return a.output.apply(on_, q,
                        {.x = at_.values.data(),
                         .x_stride = value_row,
                         .y = at_.block.data(),
                         .y_stride = s.hidden,
                         .rows = tokens_},
                        staging());
}

/// y = down(silu(gate x) * up x) for the step's tokens.
result<void> device_model::feed(queue& q, device_mlp const& part, float const* x, float* y,
                                std::int64_t width) {
  FERRY_CHECK(part.gate_and_up.apply(on_, q,
                                     {.x = x,
                                      .x_stride = config_.hidden_size,
                                      .y = at_.inner.data(),
                                      .y_stride = 2 * width,
                                      .rows = tokens_},
                                     staging()));
  FERRY_CHECK(on_.run(q, gate_rows{dense<float const>(at_.inner.data(), tokens_, 2 * width),
                                   dense(at_.gated.data(), tokens_, width)}));
  return part.down.apply(on_, q,
                         {.x = at_.gated.data(),
                          .x_stride = width,
                          .y = y,
                          .y_stride = config_.hidden_size,
                          .rows = tokens_},
                         staging());
}

/// The local experts' results for all rows that arrived.
result<void> device_model::experts(queue& q, device_moe const& layer, received const& in) {
  std::int64_t const hidden = config_.hidden_size;
  std::int64_t const width = config_.moe_intermediate_size;
  std::int64_t const rows = in.capacity;
  FERRY_CHECK(make_expert_buffers(rows));
  device_linear const& first = layer.experts.gate_and_up;
  device_linear const& second = layer.experts.down;
  product_staging const staged = at_.expert_staging.view();
  FERRY_CHECK(on_.run(q, decode_rows{.format = options_.wire,
                                     .rows = in.rows.data,
                                     .row_stride = in.rows.stride_bytes(),
                                     .scales = in.scales.data,
                                     .scale_stride = in.scales.row_stride,
                                     .index = in.index,
                                     .end = in.end,
                                     .to = dense(at_.arrived.data(), rows, hidden)}));
  FERRY_CHECK(first.apply(on_, q,
                          {.x = at_.arrived.data(),
                           .x_stride = hidden,
                           .y = at_.expert_inner.data(),
                           .y_stride = 2 * width,
                           .rows = rows,
                           .starts = in.starts,
                           .counts = in.counts,
                           .end = in.end},
                          staged));
  FERRY_CHECK(on_.run(q, gate_rows{dense<float const>(at_.expert_inner.data(), rows, 2 * width),
                                   dense(at_.expert_gated.data(), rows, width), in.end}));
  return second.apply(on_, q,
                      {.x = at_.expert_gated.data(),
                       .x_stride = width,
                       .y = at_.expert_rows.data(),
                       .y_stride = hidden,
                       .rows = rows,
                       .starts = in.starts,
                       .counts = in.counts,
                       .end = in.end},
                      staged);
}

result<void> device_model::moe(queue& q, device_moe const& layer, microbatch& slot) {
  std::int64_t const hidden = config_.hidden_size;
  auto const choices = dense(at_.choices.data(), tokens_, std::int64_t{rule_.topk});
  auto const weights = dense(at_.weights.data(), tokens_, std::int64_t{rule_.topk});
  FERRY_CHECK(layer.router.apply(on_, q,
                                 {.x = at_.normalised.data(),
                                  .x_stride = hidden,
                                  .y = at_.router_logits.data(),
                                  .y_stride = rule_.num_experts,
                                  .rows = tokens_},
                                 staging()));
  FERRY_CHECK(on_.run(
      q, choose_experts{
             .logits = dense<float const>(at_.router_logits.data(), tokens_, rule_.num_experts),
             .bias = layer.bias.data(),
             .choices = choices,
             .weights = weights,
             .num_groups = rule_.num_groups,
             .kept_groups = rule_.kept_groups,
             .softmax_scores = rule_.scoring == scoring::softmax,
             .group_is_two_best = rule_.group_is_two_best,
             .normalise = rule_.normalise,
             .scale = rule_.scale,
             .scratch = at_.choice_scratch.data(),
             .scratch_stride = choose_experts::scratch_of(rule_.num_experts, rule_.num_groups)}));
  FERRY_CHECK(slot.dispatch_send(
      q,
      {.tokens = rows_of<float>(static_cast<float const*>(at_.normalised.data()), tokens_, hidden),
       .choices = choices,
       .weights = weights,
       .layer = layer.layer}));
  matrix<float> const x = dense(at_.hidden.data(), tokens_, hidden);
  if (layer.shared) {  // while the others' rows are on their way
    std::int64_t const width =
        std::int64_t{config_.n_shared_experts} * config_.moe_intermediate_size;
    FERRY_CHECK(feed(q, *layer.shared, at_.normalised.data(), at_.block.data(), width));
    FERRY_CHECK(on_.run(q, add_rows{dense<float const>(at_.block.data(), tokens_, hidden), x}));
  }
  FERRY_TRY(received const in, slot.dispatch_receive(q));
  FERRY_CHECK(experts(q, layer, in));
  tensor const out = rows_of(x.data, tokens_, hidden);
  return slot.combine(
      q, rows_of(static_cast<float const*>(at_.expert_rows.data()), in.capacity, hidden), out, out);
}

result<void> device_model::run_layer(queue& q, int index, ferry::exchange* exchange) {
  device_layer const& layer = layers_[static_cast<std::size_t>(index)];
  std::int64_t const hidden = config_.hidden_size;
  matrix<float> const x = dense(at_.hidden.data(), tokens_, hidden);
  auto const add = [&] {
    return on_.run(q, add_rows{dense<float const>(at_.block.data(), tokens_, hidden), x});
  };
  FERRY_CHECK(normalise(q, x.data, hidden, layer.attention_norm, hidden, at_.normalised.data()));
  FERRY_CHECK(attend_layer(q, layer, caches_[static_cast<std::size_t>(index)].data()));
  FERRY_CHECK(add());
  FERRY_CHECK(normalise(q, x.data, hidden, layer.ffn_norm, hidden, at_.normalised.data()));
  if (layer.moe) {
    return moe(q, *layer.moe, exchange->microbatch(index % exchange->num_microbatches()));
  }
  FERRY_CHECK(
      feed(q, layer.dense, at_.normalised.data(), at_.block.data(), config_.intermediate_size));
  return add();
}

/// Waits until all is done, and says how it went.
result<void> device_model::finish(queue& q, ferry::exchange* exchange) const {
  if (exchange == nullptr) return q.wait(2 * timeout_);
  for (int i = 0; i < exchange->num_microbatches(); ++i) {
    FERRY_CHECK(exchange->microbatch(i).wait(q));
  }
  return {};
}

template <class T>
result<std::vector<T>> device_model::shown(queue& q, T const* from, std::int64_t size) const {
  std::vector<T> values(static_cast<std::size_t>(size));
  FERRY_CHECK(q.copy(values.data(), from, values.size() * sizeof(T)));
  FERRY_CHECK(q.wait(2 * timeout_));
  return values;
}

result<void> device_model::forward(queue& q, ferry::exchange* exchange, token_batch const& batch,
                                   wanted_logits logits, model_observer* observer) {
  result<void> const done = run_all(q, exchange, batch, logits, observer);
  // What stands on the queue uses this model's memory: kernels that failed leave by their deadline.
  if (!done) static_cast<void>(q.wait(2 * timeout_));
  return done;
}

result<void> device_model::run_all(queue& q, ferry::exchange* exchange, token_batch const& batch,
                                   wanted_logits logits, model_observer* observer) {
  if (!(q.where() == on_.where())) {
    return fail(error_code::invalid_argument, "a queue of {} for a model on {}", q.where().name(),
                on_.where().name());
  }
  std::int64_t const hidden = config_.hidden_size;
  FERRY_CHECK(bring(q, batch));
  FERRY_CHECK(embed(q));
  auto const show = [&](int layer) -> result<void> {
    if (observer == nullptr) return {};
    FERRY_TRY(auto const x, shown<float>(q, at_.hidden.data(), tokens_ * hidden));
    observer->hidden(layer, dense(x.data(), tokens_, hidden));
    return {};
  };
  FERRY_CHECK(show(-1));
  for (int i = 0; i < config_.num_layers; ++i) {
    FERRY_CHECK(run_layer(q, i, exchange));
    FERRY_CHECK(show(i));
  }
  if (logits.host.data != nullptr || logits.stay) {
    FERRY_CHECK(normalise(q, at_.hidden.data(), hidden, norm_, hidden, at_.normalised.data()));
    FERRY_CHECK(head_.apply(on_, q,
                            {.x = at_.normalised.data(),
                             .x_stride = hidden,
                             .y = at_.logits.data(),
                             .y_stride = config_.vocab_size,
                             .rows = tokens_},
                            staging()));
    std::int64_t const copied = logits.host.data != nullptr ? tokens_ : 0;
    for (std::int64_t row = 0; row < copied; ++row) {
      FERRY_CHECK(q.copy(logits.host[row], at_.logits.data() + row * config_.vocab_size,
                         static_cast<std::size_t>(config_.vocab_size) * sizeof(float)));
    }
  }
  return finish(q, exchange);
}

}  // namespace ferry::deepseek
