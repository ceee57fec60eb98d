// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "base/fail.hpp"
#include "exchange/exchange_state.hpp"
#include "exchange/launchers.hpp"
#include "exchange/tensor_checks.hpp"
#include "exec/current_device.hpp"
#include "exec/queue_stream.hpp"

#include <ferry/exec/cpu/streaming.hpp>

#include <algorithm>

namespace ferry {

microbatch::microbatch(std::unique_ptr<state> s) : state_(std::move(s)) {}
microbatch::microbatch(microbatch&&) noexcept = default;
microbatch::~microbatch() = default;

namespace {

char const* name_of(microbatch::state::stage at) {
  static constexpr char const* names[] = {"no step is open", "tokens were sent",
                                          "tokens were received", "results were sent"};
  return names[static_cast<int>(at)];
}
char const* name_of(microbatch::state const& s) {
  return name_of(s.at);
}

}  // namespace

result<bool> microbatch::state::expect(stage wanted, char const* call, queue const& q) {
  FERRY_CHECK(core.ranks.usable());
  if (at != wanted)
    return fail(error_code::invalid_state, "{} on slot {} comes when {}, but now {}", call, slot,
                name_of(wanted), name_of(at));
  FERRY_CHECK(check_queue(q));
  FERRY_TRY(bool const capturing, capture_record::takes(q));
  if (at != stage::idle && capturing != captured)
    return fail(error_code::invalid_state,
                "{} on slot {} {} a capture, but the step was begun {} it: a step is captured "
                "whole or not at all",
                call, slot, capturing ? "within" : "outside of",
                captured ? "within" : "outside of");
  capturing_call = capturing;
  return capturing || q.is_asynchronous();
}

result<void> microbatch::state::is_whole() const {
  if (at == stage::idle) return {};
  return fail(error_code::invalid_state,
              "a capture ended when {} on slot {}: a step is captured whole or not at all",
              name_of(*this), slot);
}

void microbatch::state::forget_capture() {
  at = stage::idle;
  captured = false;
}

result<void> microbatch::state::may_launch(queue const& q) {
  FERRY_CHECK(core.ranks.usable());
  if (at != stage::idle)
    return fail(error_code::invalid_state,
                "a graph with a step of slot {} is launched when {} there: a launch comes between "
                "two steps",
                slot, name_of(*this));
  FERRY_CHECK(check_queue(q));
  if (core.on_device) FERRY_CHECK(failure_so_far());
  if (q.is_asynchronous()) last_queue = q;
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

result<int> microbatch::state::blocks_of(char const* call, call_options const& with) const {
  int const most = core.options.blocks;
  if (with.blocks >= 0 && with.blocks <= most) return with.blocks ? with.blocks : most;
  return fail(error_code::invalid_argument,
              "{} on slot {} with {} blocks; the exchange was made for 1 to {}", call, slot,
              with.blocks, most);
}

bool microbatch::state::fills_caches(std::int64_t tokens) const {
  static std::size_t const cache = last_cache_bytes();
  exchange_shape const& s = core.shape;
  // The cores share a cache, and other ranks have as much to send.
  auto const rows = static_cast<double>(tokens) * std::min(s.ranks, s.topk) * s.ranks;
  return rows * static_cast<double>(s.row_bytes) > static_cast<double>(cache);
}

template <class Run>
result<void> microbatch::state::run(queue& q, int blocks, Run const& kernels) {
  captured = capturing_call;
  if (captured) {
    if (capture_record* const record = capture_record::current()) record->add(*this);
  } else if (q.is_asynchronous()) {
    last_queue = q;
  }
  if (core.on_device) return run_on_device(q, blocks, kernels);
  return q.on_host().stream.put([this, executor = &q.executor(), blocks, kernels] {
    return run_on_cpu(*executor, blocks, kernels);
  });
}

template <class Run>
result<void> microbatch::state::run_on_device(queue& q, int blocks, Run const& kernels) {
  device_rank const& rank = *core.on_device;
  FERRY_CHECK(failure_so_far());
  FERRY_TRY(current_device const chosen, current_device::make(core.where));
  device_launcher const launch{{.stream = q.stream(),
                                .blocks = blocks,
                                .teams = core.block_teams,
                                .peers = rank.peers(),
                                .waits = rank.waits(slot, core.timeout()),
                                .scratch = scratch,
                                .scratch_stride = scratch_stride},
                               rank.kernels(),
                               core.shape.max_rounds()};
  kernels(launch);
  if (!launch.failed) return {};
  error why = fail(error_code::device, "a kernel of slot {} could not be started on {}: {}", slot,
                   core.where.name(), rank.kernels().describe(launch.failed));
  core.ranks.mark_broken(why);
  return why;
}

template <class Run>
result<void> microbatch::state::run_on_cpu(cpu_executor& executor, int blocks, Run const& kernels) {
  FERRY_CHECK(core.ranks.usable());
  cpu_launch const with{
      &executor,
      blocks,
      waits.get(),
      scratch,
      scratch_stride,
      {core.mapped.data(), core.shape.rank, core.window.offset(window_field::asleep)},
      core.out.get(),
      &streams};
  kernels(cpu_launcher{with, *core.kernels, *this});
  std::optional<error> failed;
  int blamed = -1;
  if (waits->failed()) {
    failed = explain(core, waits->what_failed());
    blamed = waits->what_failed().rank;
  }
  if (core.out)
    if (std::optional<error> network = core.out->first_error()) {
      failure const cause = cause_of(core, *network, slot);
      // Peers look for the cause here, also when this rank's own waits went well (R9).
      waits->fail(cause);
      if (!failed) blamed = cause.rank;
      // A network fails with its peer.
      if (!failed || failed->code != error_code::unreachable)
        failed = core.ranks.look(cause.rank) == presence::gone
                     ? fail(cause.code, "rank {} is gone: its process ended ({})", cause.rank,
                            network->message)
                     : std::move(*network);
    }
  if (!failed) return {};
  if (core.out) core.out->give_up(*failed);
  core.ranks.mark_broken(*failed, blamed);
  return *failed;
}

namespace {

send_rows sending_of(step_frame const& frame, dispatch_input const& input) {
  return {
      .frame = frame,
      .tokens = input.tokens.data,
      .token_stride = input.tokens.stride_bytes(),
      .type = input.tokens.type,
      .scales = input.scales.data,
      .scale_stride = input.scales.row_stride,
      .caller = {input.choices.data, input.choices.row_stride, input.choices.type == id_type::int64,
                 input.weights.data, input.weights.row_stride},
      .num_tokens = static_cast<std::int32_t>(input.tokens.rows),
      .num_tokens_there = input.num_tokens,
      .layer = input.layer};
}

}  // namespace

// What is run takes its arguments by value: it may run later, and again.

result<void> microbatch::dispatch_send(queue& q, dispatch_input const& input,
                                       call_options const& with) {
  state& s = *state_;
  FERRY_TRY(bool const later, s.expect(state::stage::idle, "dispatch_send", q));
  FERRY_TRY(int const blocks, s.blocks_of("dispatch_send", with));
  FERRY_CHECK(check_dispatch(s.core, input, later));
  s.most_tokens = std::min<std::int64_t>(input.tokens.rows, s.core.options.max_tokens);
  s.at = state::stage::sent;
  s.layer = input.layer;
  return s.run(q, blocks, [&s, input](auto const& launch) {
    s.streams = s.fills_caches(input.tokens.rows);
    s.sending = sending_of(s.frame, input);
    launch(s.sending);
  });
}

result<received> microbatch::dispatch_receive(queue& q, call_options const& with) {
  state& s = *state_;
  FERRY_TRY(bool const later, s.expect(state::stage::sent, "dispatch_receive", q));
  FERRY_TRY(int const blocks, s.blocks_of("dispatch_receive", with));
  s.at = state::stage::received;
  // Always the same; not written again, because work that stands on a queue may be reading it.
  if (!s.last.starts) s.last = view_of(s.core, s.frame);
  FERRY_CHECK(s.run(q, blocks, [&s, layer = s.layer](auto const& launch) {
    // How many rounds the step takes is known once round 0 is received.
    for (int r = 0; launch.comes(r); ++r) {
      if (r > 0) {
        s.sending.round = r;
        launch(s.sending);
      }
      launch(receive_rows{s.frame, r, layer});
      if (s.core.shape.max_rounds() > 1) launch(credit_round{s.frame, r});
    }
  }));
  if (later) return s.last;
  result<void> const fits = check_capacity(s.frame, s.frame.memory.counts, s.frame.memory.wanted);
  if (fits) return s.last;
  // Told now, and not by wait() again.
  s.told_without_room = s.frame.memory.tallies[static_cast<std::size_t>(tally::rows_without_room)];
  return fits.error();
}

result<received> microbatch::dispatch(queue& q, dispatch_input const& input,
                                      call_options const& with) {
  FERRY_CHECK(dispatch_send(q, input, with));
  return dispatch_receive(q, with);
}

received const& microbatch::last_received() const {
  return state_->last;
}

result<void> microbatch::combine_send(queue& q, const_tensor expert_rows,
                                      call_options const& with) {
  state& s = *state_;
  FERRY_TRY(bool const later, s.expect(state::stage::received, "combine_send", q));
  FERRY_TRY(int const blocks, s.blocks_of("combine_send", with));
  FERRY_CHECK(check_expert_rows(s, expert_rows, later));
  return s.give_back(q, blocks, expert_rows, false);
}

result<void> microbatch::combine_send(queue& q, token_sums const& sums, call_options const& with) {
  state& s = *state_;
  FERRY_CHECK(s.expect(state::stage::received, "combine_send", q));
  FERRY_TRY(int const blocks, s.blocks_of("combine_send", with));
  FERRY_CHECK(check_token_sums(s, sums));
  return s.give_back(q, blocks, sums.rows, true);
}

result<void> microbatch::state::give_back(queue& q, int blocks, const_tensor const& rows,
                                          bool summed) {
  at = stage::returned;
  return run(q, blocks, [this, rows, summed](auto const& launch) {
    returning = {.frame = frame,
                 .rows = rows.data,
                 .row_stride = rows.stride_bytes(),
                 .type = rows.type,
                 .summed = summed};
    if (launch.takes_rounds()) {
      sending.round = 0;
      sending.header_only = true;
      launch(sending);
    }
    launch(returning);
  });
}

result<void> microbatch::combine_receive(queue& q, tensor output, const_tensor added,
                                         call_options const& with) {
  state& s = *state_;
  FERRY_TRY(bool const later, s.expect(state::stage::returned, "combine_receive", q));
  FERRY_TRY(int const blocks, s.blocks_of("combine_receive", with));
  FERRY_CHECK(check_output(s, output, added, later));
  FERRY_CHECK(s.run(q, blocks, [&s, output, added](auto const& launch) {
    gather_rows gathering{.frame = s.frame,
                          .output = output.data,
                          .output_stride = output.stride_bytes(),
                          .added = added.data,
                          .added_stride = added.stride_bytes(),
                          .type = output.type};
    for (int r = 0; launch.comes(r); ++r) {
      if (r > 0) {
        s.sending.round = s.returning.round = r;
        launch(s.sending);
        launch(s.returning);
      }
      gathering.round = r;
      launch(gathering);
    }
    ++s.steps;
  }));
  s.at = state::stage::idle;
  return {};
}

result<void> microbatch::combine(queue& q, const_tensor expert_rows, tensor output,
                                 const_tensor added, call_options const& with) {
  FERRY_TRY(bool const later, state_->expect(state::stage::received, "combine", q));
  FERRY_CHECK(check_output(*state_, output, added, later));
  FERRY_CHECK(combine_send(q, expert_rows, with));
  return combine_receive(q, output, added, with);
}

result<void> microbatch::release(queue& q, call_options const& with) {
  state& s = *state_;
  FERRY_CHECK(s.expect(state::stage::received, "release", q));
  FERRY_TRY(int const blocks, s.blocks_of("release", with));
  FERRY_CHECK(s.run(q, blocks, [&s](auto const& launch) {
    launch(return_rows{.frame = s.frame, .credit_only = true});
    launch(gather_rows{.frame = s.frame, .skip = true});
    ++s.steps;
  }));
  s.at = state::stage::idle;
  return {};
}

result<void> microbatch::wait(queue& q) {
  state& s = *state_;
  FERRY_CHECK(s.core.ranks.usable());
  FERRY_CHECK(s.check_queue(q));
  return s.core.on_device ? s.wait_on_device(q) : s.wait_on_cpu(q);
}

}  // namespace ferry
