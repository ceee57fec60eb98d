// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "base/fail.hpp"
#include "exchange/exchange_state.hpp"
#include "exchange/tensor_checks.hpp"

#include <ferry/exec/cpu/streaming.hpp>

#include <algorithm>

namespace ferry {

microbatch::microbatch(std::unique_ptr<state> s) : state_(std::move(s)) {}
microbatch::microbatch(microbatch&&) noexcept = default;
microbatch::~microbatch() = default;

result<void> microbatch::state::expect(stage wanted, char const* call) const {
  static constexpr char const* names[] = {"no step is open", "tokens were sent",
                                          "tokens were received", "results were sent"};
  if (at == wanted) return {};
  return fail(error_code::invalid_state, "{} on slot {} comes when {}, but now {}", call, slot,
              names[static_cast<int>(wanted)], names[static_cast<int>(at)]);
}

result<void> microbatch::state::check_queue(queue const& q) const {
  if (q.teams() == core.options.blocks) return {};
  return fail(error_code::invalid_argument,
              "a queue of {} teams for an exchange of {} blocks; they must be equal", q.teams(),
              core.options.blocks);
}

bool microbatch::state::fills_caches(std::int64_t tokens) const {
  static std::size_t const cache = last_cache_bytes();
  exchange_shape const& s = core.shape;
  // The cores share a cache, and other ranks have as much to send.
  auto const rows = static_cast<double>(tokens) * std::min(s.ranks, s.topk) * s.ranks;
  return rows * static_cast<double>(s.row_bytes) > static_cast<double>(cache);
}

template <class Run>
result<void> microbatch::state::run(queue& q, Run const& kernels) {
  cpu_launch const with{
      &q.executor(),
      waits.get(),
      scratch,
      scratch_stride,
      {core.mapped.data(), core.shape.rank, core.window.offset(window_field::asleep)},
      core.out.get(),
      streams};
  kernels(with, *core.kernels);
  std::optional<error> failed;
  if (waits->failed()) failed = explain(core, waits->what_failed());
  if (core.out)
    if (std::optional<error> network = core.out->first_error()) {
      // Peers look for the cause here, also when this rank's own waits went well (R9).
      waits->fail({network->code, core.shape.rank, {}, slot, 0});
      // A network fails with its peer.
      if (!failed || failed->code != error_code::unreachable) failed = std::move(network);
    }
  if (!failed) return {};
  if (core.out) core.out->give_up(*failed);
  core.ranks.mark_broken(*failed);
  return *failed;
}

result<void> microbatch::dispatch_send(queue& q, dispatch_input const& input) {
  state& s = *state_;
  FERRY_CHECK(s.core.ranks.usable());
  FERRY_CHECK(s.expect(state::stage::idle, "dispatch_send"));
  FERRY_CHECK(s.check_queue(q));
  FERRY_CHECK(check_dispatch(s.core.options, s.core.shape, input));
  s.sending = send_rows{
      .frame = s.frame,
      .tokens = input.tokens.data,
      .token_stride = input.tokens.stride_bytes(),
      .type = input.tokens.type,
      .scales = input.scales.data,
      .scale_stride = input.scales.row_stride,
      .caller = {input.choices.data, input.choices.row_stride, input.choices.type == id_type::int64,
                 input.weights.data, input.weights.row_stride},
      .num_tokens = static_cast<std::int32_t>(input.tokens.rows),
      .num_tokens_there = input.num_tokens};
  s.streams = s.fills_caches(input.tokens.rows);
  s.at = state::stage::sent;
  return s.run(q, [&](cpu_launch const& with, cpu_kernels const& k) { k.send(with, s.sending); });
}

result<received> microbatch::dispatch_receive(queue& q) {
  state& s = *state_;
  FERRY_CHECK(s.core.ranks.usable());
  FERRY_CHECK(s.expect(state::stage::sent, "dispatch_receive"));
  FERRY_CHECK(s.check_queue(q));
  s.at = state::stage::received;
  FERRY_CHECK(s.run(q, [&](cpu_launch const& with, cpu_kernels const& k) {
    // How many rounds the step takes is known once round 0 is received.
    for (int r = 0; r == 0 || (r < s.rounds() && !s.waits->failed()); ++r) {
      if (r > 0) {
        s.sending.round = r;
        k.send(with, s.sending);
      }
      k.receive(with, {s.frame, r});
      if (s.core.shape.max_rounds() > 1) k.credit(with, {s.frame, r});
    }
  }));
  s.last = view_of(s.core, s.frame);
  FERRY_CHECK(check_capacity(s.frame));
  return s.last;
}

result<received> microbatch::dispatch(queue& q, dispatch_input const& input) {
  FERRY_CHECK(dispatch_send(q, input));
  return dispatch_receive(q);
}

received const& microbatch::last_received() const {
  return state_->last;
}

result<void> microbatch::combine_send(queue& q, const_tensor expert_rows) {
  state& s = *state_;
  FERRY_CHECK(s.core.ranks.usable());
  FERRY_CHECK(s.expect(state::stage::received, "combine_send"));
  FERRY_CHECK(s.check_queue(q));
  FERRY_CHECK(check_expert_rows(s.core.options, s.frame, expert_rows));
  s.returning = return_rows{.frame = s.frame,
                            .rows = expert_rows.data,
                            .row_stride = expert_rows.stride_bytes(),
                            .type = expert_rows.type};
  return s.give_back(q);
}

result<void> microbatch::combine_send(queue& q, token_sums const& sums) {
  state& s = *state_;
  FERRY_CHECK(s.core.ranks.usable());
  FERRY_CHECK(s.expect(state::stage::received, "combine_send"));
  FERRY_CHECK(s.check_queue(q));
  FERRY_CHECK(check_token_sums(s.core.options, s.core.shape, sums));
  s.returning = return_rows{.frame = s.frame,
                            .rows = sums.rows.data,
                            .row_stride = sums.rows.stride_bytes(),
                            .type = sums.rows.type,
                            .summed = true};
  return s.give_back(q);
}

result<void> microbatch::state::give_back(queue& q) {
  at = stage::returned;
  return run(q, [&](cpu_launch const& with, cpu_kernels const& k) {
    if (rounds() > 1) {
      sending.round = 0;
      sending.header_only = true;
      k.send(with, sending);
    }
    k.give_back(with, returning);
  });
}

result<void> microbatch::combine_receive(queue& q, tensor output, const_tensor added) {
  state& s = *state_;
  FERRY_CHECK(s.core.ranks.usable());
  FERRY_CHECK(s.expect(state::stage::returned, "combine_receive"));
  FERRY_CHECK(s.check_queue(q));
  FERRY_CHECK(check_output(s.core.options, s.frame, output, added));
  gather_rows gathering{.frame = s.frame,
                        .output = output.data,
                        .output_stride = output.stride_bytes(),
                        .added = added.data,
                        .added_stride = added.stride_bytes(),
                        .type = output.type};
  FERRY_CHECK(s.run(q, [&](cpu_launch const& with, cpu_kernels const& k) {
    for (int r = 0; r < s.rounds() && !(r > 0 && s.waits->failed()); ++r) {
      if (r > 0) {
        s.sending.round = s.returning.round = r;
        k.send(with, s.sending);
        k.give_back(with, s.returning);
      }
      gathering.round = r;
      k.gather(with, gathering);
    }
  }));
  s.at = state::stage::idle;
  ++s.steps;
  return {};
}

result<void> microbatch::combine(queue& q, const_tensor expert_rows, tensor output,
                                 const_tensor added) {
  FERRY_CHECK(state_->core.ranks.usable());
  FERRY_CHECK(state_->expect(state::stage::received, "combine"));
  FERRY_CHECK(check_output(state_->core.options, state_->frame, output, added));
  FERRY_CHECK(combine_send(q, expert_rows));
  return combine_receive(q, output, added);
}

result<void> microbatch::release(queue& q) {
  state& s = *state_;
  FERRY_CHECK(s.core.ranks.usable());
  FERRY_CHECK(s.expect(state::stage::received, "release"));
  FERRY_CHECK(s.check_queue(q));
  FERRY_CHECK(s.run(q, [&](cpu_launch const& with, cpu_kernels const& k) {
    k.give_back(with, {.frame = s.frame, .credit_only = true});
    k.gather(with, {.frame = s.frame, .skip = true});
  }));
  s.at = state::stage::idle;
  ++s.steps;
  return {};
}

}  // namespace ferry
