// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// The stages of a step. They are put on queues and run there, once or, as part of a graph, often:
// what changes from step to step is read from the batch when they run.

#include <ferry/deepseek/rms_norm.hpp>

#include "base/fail.hpp"
#include "deepseek/model_state.hpp"
#include "deepseek/row_loops.hpp"

namespace ferry::deepseek {
namespace {

using run_layer = result<void> (layer_stages::*)();

// A pointer and a function: small enough that no queue allocates for it.
template <run_layer Run>
auto computing(layer_stages& s) {
  return [&s](queue& q) { return q.run([layer = &s] { return (layer->*Run)(); }); };
}

// Starts and stops the clock where the call between runs, not where it is put.
template <class Call>
result<void> timed(queue& q, layer_stages& s, double& total, Call const& call) {
  FERRY_CHECK(q.run([layer = &s]() -> result<void> {
    layer->watch = {};
    return {};
  }));
  FERRY_CHECK(call());
  struct both {
    layer_stages* layer;
    double* total;
    result<void> operator()() const {
      layer->watch.lap(*total);
      return {};
    }
  };
  return q.run(both{&s, &total});
}

const_tensor as_tensor(matrix<float const> m) {
  return {reinterpret_cast<std::byte const*>(m.data), m.rows, m.columns, dtype::f32,
          m.row_stride * static_cast<std::int64_t>(sizeof(float))};
}

tensor as_tensor(matrix<float> m) {
  return {reinterpret_cast<std::byte*>(m.data), m.rows, m.columns, dtype::f32,
          m.row_stride * static_cast<std::int64_t>(sizeof(float))};
}

}  // namespace

result<void> layer_stages::attend() {
  stopwatch clock;
  std::int64_t const columns = of->config.hidden_size;
  auto const epsilon = static_cast<float>(of->config.rms_norm_eps);
  auto const x = batch->x(columns), normal = batch->normal(columns), block = batch->block(columns);
  auto const tokens = static_cast<std::size_t>(batch->count);
  rms_norm(read_only(x), layer->attention_norm, epsilon, normal);
  FERRY_CHECK(layer->attention.apply({read_only(normal), std::span(batch->sequences).first(tokens),
                                      std::span(batch->positions).first(tokens)},
                                     of->turning, of->caches[static_cast<std::size_t>(index)],
                                     block, batch->scratch));
  loops().add({block, x});
  if (of->observer != nullptr) of->observer->attended(index, read_only(block));
  rms_norm(read_only(x), layer->ffn_norm, epsilon, normal);
  clock.lap(of->times.attention);
  return {};
}

result<void> layer_stages::run_dense() {
  stopwatch clock;
  std::int64_t const columns = of->config.hidden_size;
  auto const block = batch->block(columns);
  FERRY_CHECK(layer->dense.apply(read_only(batch->normal(columns)), block, batch->scratch));
  loops().add({block, batch->x(columns)});
  clock.lap(of->times.dense);
  return finish();
}

result<void> layer_stages::route() {
  stopwatch clock;
  FERRY_CHECK(layer->moe->route(read_only(batch->normal(of->config.hidden_size)), batch->moe_work));
  clock.lap(of->times.moe.gate);
  return {};
}

result<void> layer_stages::add_shared() {
  stopwatch clock;
  std::int64_t const columns = of->config.hidden_size;
  FERRY_CHECK(layer->moe->add_shared(read_only(batch->normal(columns)), batch->x(columns),
                                     batch->moe_work));
  clock.lap(of->times.moe.shared);
  return {};
}

result<void> layer_stages::run_experts() {
  stopwatch clock;
  FERRY_CHECK(layer->moe->run_experts(slot->last_received(), expert_rows, batch->moe_work));
  clock.lap(of->times.moe.experts);
  return {};
}

result<void> layer_stages::finish() {
  if (of->observer == nullptr) return {};
  if (layer->moe) {
    of->observer->routed(index, read_only(batch->moe_work.choices(batch->count)),
                         read_only(batch->moe_work.weights(batch->count)));
  }
  of->observer->hidden(index, read_only(batch->x(of->config.hidden_size)));
  return {};
}

result<void> model::state::embed_batch(model_batch& b) {
  stopwatch clock;
  auto const x = b.x(config.hidden_size);
  FERRY_CHECK(embed(std::span(b.ids).first(static_cast<std::size_t>(b.count)), x));
  if (observer != nullptr) observer->hidden(-1, read_only(x));
  clock.lap(times.embedding);
  return {};
}

result<void> model::state::compute_logits(model_batch& b) {
  if (b.wanted.data == nullptr && observer == nullptr) return {};
  stopwatch clock;
  auto const x = b.x(config.hidden_size), normal = b.normal(config.hidden_size);
  rms_norm(read_only(x), norm, static_cast<float>(config.rms_norm_eps), normal);
  if (observer != nullptr) observer->normalised(read_only(normal));
  if (b.wanted.data != nullptr) FERRY_CHECK(head.apply(read_only(normal), b.wanted));
  clock.lap(times.head);
  return {};
}

// Hands over where communication has been put: another microbatch computes meanwhile.
void model::state::add_moe_stages(layer_stages& s, stage_list& to) {
  using enum stage_kind;
  auto const columns = std::int64_t{config.hidden_size};
  auto const rows = std::int64_t{options.max_tokens};
  auto const add = [&](char const* name, stage_kind on, auto put, bool yields = false) {
    to.push_back({name, on, std::move(put), yields, s.index});
  };
  add("gate", compute, computing<&layer_stages::route>(s));
  add(
      "dispatch_send", communication,
      [this, &s, rows, columns](queue& q) {
        return timed(q, s, times.moe.dispatch, [&] {
          auto const x = dense<float const>(s.batch->normalised.data(), rows, columns);
          return s.slot->dispatch_send(
              q, s.layer->moe->brought(x, s.batch->moe_work, &s.batch->count));
        });
      },
      true);
  if (s.layer->moe->has_shared())
    add("shared_expert", compute, computing<&layer_stages::add_shared>(s));
  add("dispatch_receive", communication, [this, &s](queue& q) {
    return timed(q, s, times.moe.dispatch, [&]() -> result<void> {
      FERRY_TRY(received const in, s.slot->dispatch_receive(q));
      // Once: work that stands on a queue may be reading it.
      if (s.expert_rows.data) return {};
      FERRY_TRY(s.expert_rows, s.batch->moe_work.expert_rows(in.capacity));
      return {};
    });
  });
  add("experts", compute, computing<&layer_stages::run_experts>(s));
  add(
      "combine_send", communication,
      [this, &s](queue& q) {
        return timed(q, s, times.moe.combine,
                     [&] { return s.slot->combine_send(q, as_tensor(read_only(s.expert_rows))); });
      },
      true);
  add("combine_receive", communication, [this, &s, rows, columns](queue& q) -> result<void> {
    FERRY_CHECK(timed(q, s, times.moe.combine, [&] {
      auto const hidden = dense(s.batch->hidden.data(), rows, columns);
      return s.slot->combine_receive(q, as_tensor(hidden), as_tensor(read_only(hidden)));
    }));
    return q.run([layer = &s] { return layer->finish(); });
  });
}

void model::state::make_stages(model_batch& b, int microbatch) {
  using enum stage_kind;
  struct of_batch {
    state* model;
    model_batch* batch;
  };
  stage_list& stages = lists.emplace_back();
  stages.push_back(
      {"embedding", compute, [this, &b](queue& q) {
         return q.run([both = of_batch{this, &b}] { return both.model->embed_batch(*both.batch); });
       }});
  for (int i = 0; i < config.num_layers; ++i) {
    b.layers.push_back(std::make_unique<layer_stages>());
    layer_stages& s = *b.layers.back();
    s.of = this;
    s.batch = &b;
    s.index = i;
    s.layer = &layers[static_cast<std::size_t>(i)];
    stages.push_back({"attention", compute, computing<&layer_stages::attend>(s), false, i});
    if (s.layer->moe) {
      s.slot = &exchange->microbatch(2 * microbatch + i % 2);
      add_moe_stages(s, stages);
    } else {
      stages.push_back({"dense", compute, computing<&layer_stages::run_dense>(s), false, i});
    }
  }
  stages.push_back({"head", compute, [this, &b](queue& q) {
                      return q.run([both = of_batch{this, &b}] {
                        return both.model->compute_logits(*both.batch);
                      });
                    }});
}

}  // namespace ferry::deepseek
