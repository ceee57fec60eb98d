// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "lone_step.hpp"

#include <ferry/base/number_formats.hpp>

#include <algorithm>
#include <cstring>

namespace ferry::perf {
namespace {

exchange_options options_of(lone_shape const& s) {
  exchange_options o{.num_experts = s.experts, .topk = s.topk, .hidden = s.hidden};
  o.max_tokens = std::max(1, s.tokens);
  o.wire = s.wire;
  o.layout = s.layout;
  o.reduction = s.reduction;
  o.num_microbatches = 1;
  if (s.wire == wire::opaque) {
    o.opaque_row_bytes = static_cast<std::size_t>(s.hidden);
    o.opaque_scale_bytes = 4 * static_cast<std::size_t>(ceil_div(s.hidden, scale_block));
  }
  return o;
}

/// Numbers of both signs and several magnitudes.
std::vector<std::byte> bf16_rows(std::size_t elements) {
  std::vector<std::byte> made(2 * elements);
  for (std::size_t i = 0; i < elements; ++i) {
    bf16 const x = from_float<bf16>(static_cast<float>(static_cast<int>(i * 37 % 255) - 127) / 16);
    std::memcpy(made.data() + 2 * i, &x, 2);
  }
  return made;
}

}  // namespace

lone_step::lone_step(lone_shape const& shape)
    : shape_(shape),
      given_(static_cast<std::size_t>(shape.hidden) * (shape.wire == wire::opaque ? 1 : 2)),
      sent_(static_cast<std::size_t>(shape.hidden) * bytes_of(element_of(shape.wire))),
      home_(2 * static_cast<std::size_t>(shape.hidden)),
      ranks_(join(threads(1).rank(0)).value()) {
  exchange_options const options = options_of(shape);
  ep_ = std::make_unique<exchange>(make_exchange(ranks_, options).value());
  auto const tokens = static_cast<std::size_t>(shape.tokens);
  auto const hidden = static_cast<std::size_t>(shape.hidden);
  auto const topk = static_cast<std::size_t>(shape.topk);
  tokens_ = bf16_rows(tokens * hidden);
  scales_.resize(tokens * options.opaque_scale_bytes);
  made_ = bf16_rows(std::max(tokens * topk, std::size_t{1}) * hidden);
  output_.resize(tokens * home_);
  for (std::size_t t = 0; t < tokens; ++t)
    for (std::size_t k = 0; k < topk; ++k) {
      choices_.push_back(
          static_cast<std::int32_t>((t * 5 + k * 7) % static_cast<std::size_t>(shape.experts)));
      weights_.push_back(0.125f * static_cast<float>(1 + (t + k) % 7));
    }
  positions_ = static_cast<std::int64_t>(tokens * topk);
}

void lone_step::send() {
  bool const opaque = shape_.wire == wire::opaque;
  std::int64_t const tokens = shape_.tokens;
  dispatch_input in;
  in.tokens = {tokens_.data(), tokens, shape_.hidden, opaque ? dtype::byte : dtype::bf16,
               static_cast<std::int64_t>(given_)};
  in.choices = dense(choices_.data(), tokens, shape_.topk);
  in.weights = dense(const_cast<float const*>(weights_.data()), tokens, shape_.topk);
  if (opaque)
    in.scales = dense(const_cast<std::byte const*>(scales_.data()), tokens,
                      static_cast<std::int64_t>(ep_->options().opaque_scale_bytes));
  ep_->microbatch(0).dispatch_send(queue_, in).value();
}

void lone_step::receive() {
  ep_->microbatch(0).dispatch_receive(queue_).value();
}

void lone_step::give_back() {
  const_tensor const rows{made_.data(), positions_, shape_.hidden, dtype::bf16,
                          static_cast<std::int64_t>(home_)};
  ep_->microbatch(0).combine_send(queue_, rows).value();
}

void lone_step::give_back_sums() {
  const_tensor const rows{made_.data(), shape_.tokens, shape_.hidden, dtype::bf16,
                          static_cast<std::int64_t>(home_)};
  ep_->microbatch(0).combine_send(queue_, token_sums{rows}).value();
}

void lone_step::gather() {
  tensor const rows{output_.data(), shape_.tokens, shape_.hidden, dtype::bf16,
                    static_cast<std::int64_t>(home_)};
  ep_->microbatch(0).combine_receive(queue_, rows).value();
}

}  // namespace ferry::perf
