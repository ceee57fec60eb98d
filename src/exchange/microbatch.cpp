// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "base/fail.hpp"
#include "exchange/exchange_state.hpp"
#include "exchange/launchers.hpp"
#include "exchange/tensor_checks.hpp"
#include "exec/capture_members.hpp"

#include <algorithm>

namespace ferry {

microbatch::microbatch(std::unique_ptr<state> s) : state_(std::move(s)) {}
microbatch::microbatch(microbatch&&) noexcept = default;
microbatch::~microbatch() = default;

result<void> microbatch::state::expect(stage wanted, char const* call) {
  static constexpr char const* names[] = {"no step is open", "tokens were sent",
                                          "tokens were received", "results were sent"};
  if (at == wanted)
    return core.on_device && in_capture() ? join_this_capture(call) : result<void>{};
  return fail(error_code::invalid_state, "{} on slot {} comes when {}, but now {}", call, slot,
              names[static_cast<int>(wanted)], names[static_cast<int>(at)]);
}

// A replay begins where the last one ended, so a step is captured whole or not at all.
result<void> microbatch::state::join_this_capture(char const* call) {
  if (has_joined_capture(this)) return {};
  if (at != stage::idle)
    return fail(error_code::invalid_state,
                "{} on slot {} cannot be captured: the step that it belongs to was begun before",
                call, slot);
  join_capture(this, [this](bool kept) -> result<void> {
    if (kept && at != stage::idle)
      return fail(error_code::invalid_state,
                  "the capture ends within a step of slot {}; it must hold the whole step", slot);
    if (!kept) at = stage::idle;
    return {};
  });
  return {};
}

result<void> microbatch::state::check_queue(queue const& q) const {
  if (!(q.where() == core.where))
    return fail(error_code::invalid_argument, "a queue of {} for an exchange on {}",
                q.where().name(), core.where.name());
  if (core.on_device || q.teams() == core.options.blocks) return {};
  return fail(error_code::invalid_argument,
              "a queue of {} teams for an exchange of {} blocks; they must be equal", q.teams(),
              core.options.blocks);
}

template <class Run>
result<void> microbatch::state::run(queue& q, Run const& kernels) {
  return core.on_device ? run_on_device(q, kernels) : run_on_cpu(q, kernels);
}

template <class Run>
result<void> microbatch::state::run_on_device(queue& q, Run const& kernels) {
  device_rank const& rank = *core.on_device;
  FERRY_CHECK(failure_so_far());
  FERRY_CHECK(to_result(core.where.about().backend->make_current(core.where.ordinal())));
  device_launcher const launch{{.stream = q.stream(),
                                .blocks = core.options.blocks,
                                .teams = core.block_teams,
                                .peers = rank.peers(),
                                .waits = rank.waits(slot, core.timeout()),
                                .scratch = scratch,
                                .scratch_stride = scratch_stride},
                               rank.kernels(),
                               core.shape.max_rounds()};
  last_queue = q;
  kernels(launch);
  if (!launch.failed) return {};
  error why = fail(error_code::device, "a kernel of slot {} could not be started on {}: {}", slot,
                   core.where.name(), rank.kernels().describe(launch.failed));
  core.ranks.mark_broken(why);
  return why;
}

template <class Run>
result<void> microbatch::state::run_on_cpu(queue& q, Run const& kernels) {
  cpu_launch const with{
      &q.executor(),
      waits.get(),
      scratch,
      scratch_stride,
      {core.mapped.data(), core.shape.rank, core.window.offset(window_field::asleep)},
      core.out.get()};
  kernels(cpu_launcher{with, *core.kernels, *this});
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
  FERRY_CHECK(check_dispatch(s.core, input));
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
  s.most_tokens = std::min<std::int64_t>(input.tokens.rows, s.core.options.max_tokens);
  s.at = state::stage::sent;
  return s.run(q, [&](auto const& launch) { launch(s.sending); });
}

result<received> microbatch::dispatch_receive(queue& q) {
  state& s = *state_;
  FERRY_CHECK(s.core.ranks.usable());
  FERRY_CHECK(s.expect(state::stage::sent, "dispatch_receive"));
  FERRY_CHECK(s.check_queue(q));
  s.at = state::stage::received;
  s.last = view_of(s.core, s.frame);
  FERRY_CHECK(s.run(q, [&](auto const& launch) {
    // How many rounds the step takes is known once round 0 is received.
    for (int r = 0; launch.comes(r); ++r) {
      if (r > 0) {
        s.sending.round = r;
        launch(s.sending);
      }
      launch(receive_rows{s.frame, r});
      if (s.core.shape.max_rounds() > 1) launch(credit_round{s.frame, r});
    }
  }));
  if (!s.core.on_device)
    FERRY_CHECK(check_capacity(s.frame, s.frame.memory.counts, s.frame.memory.wanted));
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
  FERRY_CHECK(check_expert_rows(s, expert_rows));
  s.returning = return_rows{.frame = s.frame,
                            .rows = expert_rows.data,
                            .row_stride = expert_rows.stride_bytes(),
                            .type = expert_rows.type};
  s.at = state::stage::returned;
  return s.run(q, [&](auto const& launch) {
    if (launch.takes_rounds()) {
      s.sending.round = 0;
      s.sending.header_only = true;
      launch(s.sending);
    }
    launch(s.returning);
  });
}

result<void> microbatch::combine_receive(queue& q, tensor output, const_tensor added) {
  state& s = *state_;
  FERRY_CHECK(s.core.ranks.usable());
  FERRY_CHECK(s.expect(state::stage::returned, "combine_receive"));
  FERRY_CHECK(s.check_queue(q));
  FERRY_CHECK(check_output(s, output, added));
  gather_rows gathering{.frame = s.frame,
                        .output = output.data,
                        .output_stride = output.stride_bytes(),
                        .added = added.data,
                        .added_stride = added.stride_bytes(),
                        .type = output.type};
  FERRY_CHECK(s.run(q, [&](auto const& launch) {
    for (int r = 0; launch.comes(r); ++r) {
      if (r > 0) {
        s.sending.round = s.returning.round = r;
        launch(s.sending);
        launch(s.returning);
      }
      gathering.round = r;
      launch(gathering);
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
  FERRY_CHECK(check_output(*state_, output, added));
  FERRY_CHECK(combine_send(q, expert_rows));
  return combine_receive(q, output, added);
}

result<void> microbatch::release(queue& q) {
  state& s = *state_;
  FERRY_CHECK(s.core.ranks.usable());
  FERRY_CHECK(s.expect(state::stage::received, "release"));
  FERRY_CHECK(s.check_queue(q));
  FERRY_CHECK(s.run(q, [&](auto const& launch) {
    launch(return_rows{.frame = s.frame, .credit_only = true});
    launch(gather_rows{.frame = s.frame, .skip = true});
  }));
  s.at = state::stage::idle;
  ++s.steps;
  return {};
}

result<void> microbatch::wait(queue& q) {
  state& s = *state_;
  FERRY_CHECK(s.core.ranks.usable());
  FERRY_CHECK(s.check_queue(q));
  // A CPU queue has done all when the call that put it there returned, and said how it went.
  return s.core.on_device ? s.wait_on_device(q) : result<void>{};
}

}  // namespace ferry
