// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// The gate, and grouped SwiGLU experts beside the ceiling that oneDNN sets: products of the same
// sizes without anything around them. `of_ceiling` is the products' time over the experts'.

#include <ferry/base/number_formats.hpp>
#include <ferry/deepseek/experts.hpp>
#include <ferry/deepseek/gate.hpp>

#include <benchmark/benchmark.h>
#include <oneapi/dnnl/dnnl.hpp>

#include <chrono>
#include <functional>
#include <vector>

namespace {

using namespace ferry;
using namespace ferry::deepseek;

std::vector<float> numbers(std::size_t count) {
  std::vector<float> made(count);
  for (std::size_t i = 0; i < count; ++i)
    made[i] = static_cast<float>(static_cast<int>(i * 29 % 63) - 31) / 64;
  return made;
}

void choose_experts(benchmark::State& state) {
  auto const tokens = state.range(0);
  gate_rule const rule{.num_experts = 256, .topk = 8, .num_groups = 8, .kept_groups = 4};
  std::vector<float> const logits = numbers(static_cast<std::size_t>(tokens) * 256);
  std::vector<float> const bias = numbers(256);
  std::vector<std::int32_t> ids(static_cast<std::size_t>(tokens) * 8);
  std::vector<float> weights(ids.size());
  for (auto _ : state) {
    choose(rule, dense(logits.data(), tokens, 256), bias.data(), dense(ids.data(), tokens, 8),
           dense(weights.data(), tokens, 8));
    benchmark::DoNotOptimize(ids.data());
  }
  state.SetItemsProcessed(state.iterations() * tokens);
}

constexpr int hidden = 1024, width = 512, num_experts = 8;

double seconds(std::function<void()> const& f) {
  auto const start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// oneDNN's own product of [rows, in] by packed weights [in, out] in f32.
class bare_product {
 public:
  bare_product(int rows, int in, int out) : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
    using tag = dnnl::memory::format_tag;
    auto const f32 = dnnl::memory::data_type::f32;
    dnnl::memory::desc const x({rows, in}, f32, tag::ab), w({in, out}, f32, tag::any),
        y({rows, out}, f32, tag::ab);
    dnnl::matmul::primitive_desc const how(dnnl::matmul::desc(x, w, y), engine_);
    product_ = dnnl::matmul(how);
    x_ = dnnl::memory(x, engine_);
    w_ = dnnl::memory(how.weights_desc(), engine_);
    y_ = dnnl::memory(y, engine_);
    for (auto* m : {&x_, &w_, &y_})
      std::fill_n(static_cast<char*>(m->get_data_handle()), m->get_desc().get_size(), 0);
  }
  void operator()() {
    product_.execute(stream_, {{DNNL_ARG_SRC, x_}, {DNNL_ARG_WEIGHTS, w_}, {DNNL_ARG_DST, y_}});
    stream_.wait();
  }

 private:
  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::matmul product_;
  dnnl::memory x_, w_, y_;
};

deepseek::experts make_experts() {
  std::vector<mlp> all;
  std::vector<float> const in = numbers(std::size_t{2} * width * hidden);
  for (int e = 0; e < num_experts; ++e)
    all.push_back(mlp::make(dense<float const>(in.data(), 2 * width, hidden),
                            dense<float const>(in.data(), hidden, width))
                      .value());
  return deepseek::experts::make(std::move(all), hidden, wire::bf16).value();
}

void grouped_swiglu(benchmark::State& state) {
  auto const rows = static_cast<int>(state.range(0));  // of each expert
  deepseek::experts const local = make_experts();
  std::vector<bf16> x(static_cast<std::size_t>(rows) * num_experts * hidden,
                      from_float<bf16>(0.5f));
  std::vector<float> y(x.size()), scratch(local.scratch_size());
  std::vector<std::int32_t> starts, counts(num_experts, rows);
  for (int e = 0; e < num_experts; ++e) starts.push_back(e * rows);
  std::int32_t const end = rows * num_experts;
  received in;
  in.rows = rows_of(x.data(), end, hidden);
  in.num_local_experts = num_experts;
  in.starts = starts.data();
  in.counts = counts.data();
  in.end = &end;
  in.capacity = end;
  std::vector<bare_product> up, down;
  for (int e = 0; e < num_experts; ++e) {
    up.emplace_back(rows, hidden, 2 * width);
    down.emplace_back(rows, width, hidden);
  }
  double all = 0, bare = 0;
  for (auto _ : state) {
    double const took =
        seconds([&] { local.apply(in, dense(y.data(), end, hidden), scratch).value(); });
    state.SetIterationTime(took);
    all += took;
    bare += seconds([&] {
      for (auto& product : up) product();
      for (auto& product : down) product();
    });
  }
  state.counters["of_ceiling"] = bare / all;
  state.counters["FLOP/s"] = benchmark::Counter(static_cast<double>(state.iterations()) * 6.0 *
                                                end * hidden * width / all);
}

BENCHMARK(choose_experts)->Arg(1)->Arg(128);
BENCHMARK(grouped_swiglu)->Arg(1)->Arg(16)->Arg(64)->UseManualTime();

}  // namespace
