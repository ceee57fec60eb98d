// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "protocol/stepped_exchange.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace ferry::protocol_test {
namespace {

// The rank whose driver runs on this thread.
thread_local stepped_rank* driven = nullptr;

exchange_options options_of(run_shape const& shape, int experts) {
  exchange_options o;
  o.num_experts = experts;
  o.topk = topk;
  o.hidden = hidden;
  o.max_tokens = shape.max_tokens;
  o.tokens = o.expert_rows = o.output = dtype::f32;
  o.wire = o.combine_wire = wire::f32;
  o.layout = shape.layout;
  if (o.layout == layout::padded) o.capacity = shape.ranks * shape.max_tokens * topk;
  o.reduction = shape.reduction;
  o.blocks = shape.blocks;
  o.num_microbatches = shape.slots;
  o.round_tokens = shape.round_tokens;
  o.chunk_tokens = shape.chunk_tokens;
  return o;
}

template <class Kernel>
void launch(cpu_launch const& with, Kernel const& kernel) {
  stepped_rank& rank = *driven;
  rank.on_all_blocks([&](int block) {
    agent const a{rank, block};
    std::byte* const scratch = with.scratch + static_cast<std::size_t>(block) * with.scratch_stride;
    kernel(stepping_team(a, scratch, scratch + row_scratch_bytes(rank.core.shape)),
           slow_delivery{&a});
  });
}

// Credits: `done` may speak of several rounds at once, and a header of combine's rounds, which only
// says that there is room, may be followed by the next one while a slower block still looks for it.
bool may_be_ahead(stepped_rank const& r, awaited const& what) {
  exchange_shape const& shape = r.core.shape;
  auto const rounds = static_cast<std::uint64_t>(shape.max_rounds());
  std::uint64_t const in_step = (what.epoch - r.all.shape.epochs_before - 1) % shape.step_epochs();
  bool const of_combine = rounds > 1 && in_step >= rounds;
  return what.kind == flag::done || (what.kind == flag::header && of_combine);
}

int agent_index(agent const& a) {
  return a.rank.index * a.rank.all.shape.blocks + a.block;
}

}  // namespace

char const* to_string(outcome o) {
  switch (o) {
    case outcome::right: return "right";
    case outcome::wrong_data: return "wrong data";
    case outcome::stuck: return "stuck";
    case outcome::ahead: return "epoch ahead";
    case outcome::refused: return "refused";
  }
  return "unknown";
}

cpu_kernels const& stepped_kernels() {
  static cpu_kernels const table{launch<send_rows>, launch<receive_rows>, launch<credit_round>,
                                 launch<return_rows>, launch<gather_rows>};
  return table;
}

relay_kernels const& stepped_relays() {
  static relay_kernels const table{launch<by_nodes<send_rows>>, launch<forward_rows>,
                                   launch<by_nodes<receive_rows>>, launch<by_nodes<return_rows>>,
                                   launch<forward_sums>};
  return table;
}

cpu_launch launch_of(stepped_rank& r, int slot) {
  microbatch::state& s = *r.states[static_cast<std::size_t>(slot)];
  return {&r.work_queue.executor(), r.core.options.blocks, s.waits.get(), s.scratch,
          s.scratch_stride,         {nullptr, r.index, 0}, nullptr};
}

stepped_rank::stepped_rank(run& r, int rank)
    : all(r), index(rank), work_queue(queue::cpu(r.shape.blocks).value()) {
  core.ranks = join(threads(1).rank(0)).value();
  core.options = options_of(r.shape, r.num_experts());
  core.shape = shape_of(core.options, rank, r.shape.ranks);
  core.layout = positions_of(core.options, core.shape).value();
  if (r.shape.ranks_per_node > 0)
    core.paths = std::make_unique<node_paths>(
        node_map::of_equal(r.shape.ranks, r.shape.ranks_per_node), rank);
  core.window =
      window_of(core.options, core.shape, core.paths ? core.paths->shape : relay_shape{}).value();
  memory = r.reused_windows.empty() ? window::plain(core.window.bytes()).value()
                                    : r.reused_windows[static_cast<std::size_t>(rank)];
  core.readable.assign(static_cast<std::size_t>(r.shape.ranks), nullptr);
  core.readable[static_cast<std::size_t>(rank)] = memory.data();
  core.mapped = core.readable;
  for (int e = 0; e < r.num_experts(); ++e)
    core.owners.push_back(owner_of(e, r.shape.ranks, r.num_experts()));
  core.receives_fnuz.resize(static_cast<std::size_t>(r.shape.ranks));
  core.kernels = &stepped_kernels();
  core.relays = &stepped_relays();
  for (int s = 0; s < r.shape.slots; ++s) {
    auto state = std::make_unique<microbatch::state>(core, s);
    state->allocate().value();
    state->waits = std::make_unique<waiter>(
        core.waits(s),
        reinterpret_cast<std::uint32_t*>(own() + core.window.offset(window_field::asleep)),
        core.status_of(rank), peer_watch{});
    states.push_back(state.get());
    slots.emplace_back(std::move(state));
  }
  auto const n = static_cast<std::size_t>(r.shape.slots);
  auto const rows = static_cast<std::size_t>(core.layout.capacity) * hidden;
  tokens.resize(n);
  made.assign(n, std::vector<float>(rows));
  output.resize(n);
  plans.resize(n);
  start_after(r.shape.epochs_before);
}

void stepped_rank::start_after(std::uint64_t epoch) {
  auto const set = [&](std::size_t offset, flag kind) {
    std::uint64_t const word = epoch << epoch_shift(kind);
    std::memcpy(own() + offset, &word, sizeof word);
  };
  for (microbatch::state* s : states) {
    step_frame const& f = s->frame;
    std::fill_n(f.memory.ticks, num_phases * core.options.blocks, epoch);
    for (int from = 0; from < f.shape.ranks; ++from) {
      set(f.line_head(flag_field::arrived, from), flag::header);
      set(f.line_head(flag_field::back, from), flag::done);
      for (int c = 0; c < f.shape.round_chunks(); ++c) {
        set(f.chunk_flag(flag_field::arrived, from, c), flag::arrived);
        set(f.chunk_flag(flag_field::back, from, c), flag::back);
      }
    }
  }
}

void stepped_rank::on_all_blocks(std::function<void(int)> const& work) {
  if (all.stopped()) return;
  task = &work;
  ++generation;
  busy = all.shape.blocks - 1;
  work(0);
  if (all.shape.blocks > 1)
    all.order.wait_through([this] { return busy == 0; },
                           [this] { return fmt::format("rank {} waits for its blocks", index); });
}

void stepped_rank::help(int block) {
  int seen = 0;
  for (;;) {
    all.order.wait_until([&] { return over || generation != seen; },
                         [&] { return fmt::format("block {} of rank {} is free", block, index); });
    if (generation == seen) return;
    seen = generation;
    (*task)(block);
    --busy;
  }
}

run::run(run_shape const& s, conduct& c, std::uint64_t seed_of_all, std::vector<window> reused)
    : shape(s),
      habits(c),
      seed(seed_of_all),
      reused_windows(std::move(reused)),
      memory(s.ranks * s.blocks, s.ranks, seed_of_all * 3 + 1),
      order(s.ranks * s.blocks, memory, seed_of_all * 3 + 2) {
  for (int r = 0; r < shape.ranks; ++r) ranks.push_back(std::make_unique<stepped_rank>(*this, r));
}

verdict run::play() {
  order.run([this](int i) {
    stepped_rank& rank = *ranks[static_cast<std::size_t>(i / shape.blocks)];
    if (i % shape.blocks != 0) return rank.help(i % shape.blocks);
    driven = &rank;
    habits.begin(rank);
    for (int n = 1; n <= shape.steps && !stopped(); ++n)
      if (!habits.step(rank, n)) break;
    rank.over = true;
  });
  if (found.what == outcome::right && !order.stuck().empty())
    found = {outcome::stuck, fmt::format("seed {}: {}", seed, order.stuck())};
  return found;
}

void run::report(outcome what, std::string text) {
  if (found.what == outcome::right && order.stuck().empty())
    found = {what, fmt::format("seed {}: {}", seed, text)};
  order.stop();
}

verdict play(run_shape const& shape, conduct& habits, std::uint64_t seed) {
  run r(shape, habits, seed);
  return r.play();
}

bool conduct::step(stepped_rank& r, int n) {
  if (r.all.shape.slots == 1)
    return send(r, 0, n) && receive(r, 0, n) && give_back(r, 0, n) && gather(r, 0, n);
  // Two steps under way at once, in an order that is the same on all ranks (R8).
  return send(r, 1, n) && send(r, 0, n) && receive(r, 1, n) && give_back(r, 1, n) &&
         receive(r, 0, n) && gather(r, 1, n) && give_back(r, 0, n) && gather(r, 0, n);
}

bool conduct::wait(agent const& a, awaited const& what, std::uint64_t const* word,
                   std::uint64_t& value) {
  run& all = a.rank.all;
  all.order.pause();
  int const shift = epoch_shift(what.kind);
  bool const arrived = all.order.wait_until(
      [&] {
        value = *word;
        return has_reached(what.kind, value, what.epoch);
      },
      [&] {
        return fmt::format("rank {} waits for word {} of rank {}, chunk {}, epoch {}, and sees {}",
                           a.rank.index, static_cast<int>(what.kind), what.rank, what.chunk,
                           what.epoch, value >> shift);
      });
  if (arrived && all.shape.check_ahead && !may_be_ahead(a.rank, what) &&
      has_reached(what.kind, value, what.epoch + 1))
    all.report(outcome::ahead,
               fmt::format("rank {} at epoch {} sees epoch {} in word {} of rank {}", a.rank.index,
                           what.epoch, value >> shift, static_cast<int>(what.kind), what.rank));
  if (!all.stopped()) return true;
  for (microbatch::state* s : a.rank.states)
    s->waits->fail({error_code::timeout, what.rank, what, 0, 0});
  return false;
}

void conduct::put(agent const& a, int to, std::size_t offset, std::byte const* from,
                  std::size_t bytes) {
  run& all = a.rank.all;
  std::byte* const there = all.ranks[static_cast<std::size_t>(to)]->own() + offset;
  if (to == a.rank.index && !all.shape.slow_self)
    std::memcpy(there, from, bytes);
  else
    all.memory.store(agent_index(a), to, there, from, bytes, slow_memory::promise::plain);
  all.order.pause();
}

void conduct::publish(agent const& a, int to, flag, std::size_t offset, std::uint64_t word) {
  run& all = a.rank.all;
  std::byte* const there = all.ranks[static_cast<std::size_t>(to)]->own() + offset;
  if (to == a.rank.index && !all.shape.slow_self)
    std::memcpy(there, &word, sizeof word);
  else
    all.memory.store(agent_index(a), to, there, reinterpret_cast<std::byte const*>(&word),
                     sizeof word, slow_memory::promise::release);
  all.order.pause();
}

void conduct::publish_plainly(agent const& a, int to, std::size_t offset, std::uint64_t word) {
  run& all = a.rank.all;
  std::byte* const there = all.ranks[static_cast<std::size_t>(to)]->own() + offset;
  if (to == a.rank.index && !all.shape.slow_self)
    std::memcpy(there, &word, sizeof word);
  else
    all.memory.store_word(agent_index(a), to, there, word);
  all.order.pause();
}

}  // namespace ferry::protocol_test
