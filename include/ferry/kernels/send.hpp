// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The sending half of dispatch.
#pragma once

#include <ferry/kernels/outgoing_rows.hpp>
#include <ferry/kernels/route.hpp>
#include <ferry/kernels/step.hpp>
#include <ferry/transport/delivery.hpp>

namespace ferry {

/// Sends each local token once to every rank that owns one of its experts. Token t of a round
/// always lands at index t of the source's inbox.
///
/// Per peer: wait for its credit (R3); the header word, which covers the expert counts; per chunk,
/// also an empty one, the rows, scales and routes, then the chunk's word (R4). A row is read and
/// converted once, however many ranks it goes to.
struct send_rows {
  step_frame frame;
  std::byte const* tokens = nullptr;  ///< [T, hidden] of `type`, or opaque bytes
  std::int64_t token_stride = 0;      ///< bytes
  dtype type = dtype::bf16;
  std::byte const* scales = nullptr;  ///< opaque rows: [T, scale_bytes]
  std::int64_t scale_stride = 0;      ///< bytes
  caller_routing caller;
  std::int32_t num_tokens = 0;  ///< T, unless it lies in device memory
  std::int32_t const* num_tokens_there = nullptr;
  int round = 0;
  int layer = 0;             ///< whose table maps the choices, where there are tables
  bool header_only = false;  ///< a round of combine: only says that the returned array is free

  /// Rows go through memory.
  template <team Team, delivery<Team> Net>
  FERRY_FN void operator()(Team const& t, Net const& net) const {
    run<memory_rows>(t, net);
  }

  /// Rows go out in one of the forms of outgoing_rows.hpp, which row_forms.hpp chooses from.
  template <template <class> class Rows, team Team, delivery<Team> Net>
  FERRY_FN void run(Team const& t, Net const& net) const {
    bool const first = round == 0 && !header_only;
    if (!first && (round >= *frame.memory.rounds || (header_only && *frame.memory.rounds == 1)))
      return;
    step_clock const clock(t, frame, phase::send, first);
    std::uint64_t const epoch =
        header_only ? clock.combine(round, *frame.memory.rounds) : clock.dispatch(round);
    if (!wait_for_credit(t, net, epoch - 1)) return;

    int const all = tokens_of_step(t, first);
    int const left = header_only ? 0 : all - round * frame.shape.round_tokens;
    if (t.block() == 0) {
      if (first) {
        sample_choices(t, all);
        count_experts(t, net, all);
      }
      t.drain();
      t.block_sync();
      publish_header(t, net, epoch, left < 0 ? 0 : left);
    }
    if (first) keep_all_routing(t, all);
    send_chunks<Rows<Team>>(t, net, epoch, frame.tokens_in_round(header_only ? 0 : all, round));
    clock.finish(t);
  }

 private:
  // Each number is read in a branch of its own: a choice between addresses is one that no compiler
  // knows the kind of memory of.
  template <team Team>
  FERRY_FN int tokens_of_step(Team const& t, bool first) const {
    if (first && !num_tokens_there) return num_tokens;
    int const said = *(first ? num_tokens_there : frame.memory.num_tokens);
    t.sync();
    if (!first) return said;
    // A host that may read device memory has checked the count; elsewhere it is cut to what is
    // there.
    int const most = num_tokens < frame.shape.max_tokens ? num_tokens : frame.shape.max_tokens;
    int const cut = said < 0 ? 0 : said < most ? said : most;
    if (cut != said && t.block() == 0 && t.index() == 0 && t.leader())
      count(t, frame, tally::tokens_misstated, 1);
    return cut;
  }

  // R3: nobody still reads the inbox rows that are about to be overwritten, on any rank.
  template <team Team, delivery<Team> Net>
  FERRY_FN bool wait_for_credit(Team const& t, Net const& net, std::uint64_t epoch) const {
    bool ok = true;
    for (int d = t.lane(); d < frame.shape.ranks && ok; d += Team::lanes) {
      std::uint64_t seen;
      ok = t.wait({flag::done, d, -1, epoch}, own_word(net, frame.line_head(flag_field::back, d)),
                  seen);
    }
    return t.block_all(ok && !t.failed());
  }

  // Tells every rank how many rows each of its experts will get in this step, so that receivers
  // know every row's final position before the first row is there.
  template <team Team, delivery<Team> Net>
  FERRY_FN void count_experts(Team const& t, Net const& net, int all) const {
    std::uint32_t* const counts = frame.memory.expert_counts;
    int const worker = t.index() * Team::lanes + t.lane();
    int const workers = t.count() * Team::lanes;
    for (int e = worker; e < frame.shape.experts; e += workers) counts[e] = 0;
    t.block_sync();
    slot_chooser const slots(frame, layer);
    for (int token = worker; token < all; token += workers)
      for (int k = 0; k < frame.shape.topk; ++k) {
        std::int32_t const slot = slots.slot(token, caller.id(token, k));
        if (slot >= 0) t.fetch_add(counts + slot, std::uint32_t{1});
      }
    t.block_sync();
    for (int d = t.index(); d < frame.shape.ranks; d += t.count()) {
      std::size_t const to =
          frame.at(slot_field::counts, static_cast<std::size_t>(frame.shape.rank));
      std::uint32_t const* const of_rank = counts + frame.shape.first_expert(d);
      auto const experts = static_cast<std::uint32_t>(frame.shape.local_experts(d));
      if constexpr (Team::lanes == 1)
        net.put(t, d, to, reinterpret_cast<std::byte const*>(of_rank), 4 * std::size_t{experts});
      else
        for (auto e = static_cast<std::uint32_t>(t.lane()); e < experts; e += Team::lanes)
          net.put_value(t, d, to, 4 * e, of_rank[e]);
    }
    if (t.index() == 0 && t.leader()) *frame.memory.num_tokens = all;
  }

  // The choices of some tokens, evenly spaced over the step, as the caller named them: of a model's
  // step the same tokens in every layer. Which experts are chosen together no count of rows tells.
  template <team Team>
  FERRY_FN void sample_choices(Team const& t, int all) const {
    expert_map const& map = frame.placed;
    std::int32_t* const samples = map.samples;
    int const topk = frame.shape.topk;
    for (int i = t.index(); i < map.sampled_tokens; i += t.count()) {
      int const token = all > map.sampled_tokens
                            ? static_cast<int>(std::int64_t{i} * all / map.sampled_tokens)
                            : i;
      for (int k = t.lane(); k < topk; k += Team::lanes) {
        std::int64_t const id = token < all ? caller.id(token, k) : -1;
        samples[(i * map.layers + layer) * topk + k] =
            id >= 0 && id < map.experts ? static_cast<std::int32_t>(id) : -1;
      }
    }
  }

  template <team Team, delivery<Team> Net>
  FERRY_FN void publish_header(Team const& t, Net const& net, std::uint64_t epoch, int left) const {
    if (t.index() != 0) return;
    net.release(t);
    for (int i = t.lane(); i < frame.shape.ranks; i += Team::lanes)
      net.publish(t, rotated<Team>(i), flag::header,
                  frame.line_head(flag_field::arrived, frame.shape.rank),
                  epoch << epoch_shift(flag::header) | static_cast<std::uint64_t>(left));
  }

  // This block's tokens of all rounds: later rounds and the gather read the copy, not the caller's.
  template <team Team>
  FERRY_FN void keep_all_routing(Team const& t, int all) const {
    std::uint64_t bad = 0;
    slot_chooser const slots(frame, layer);
    for (int r = 0; r * frame.shape.round_tokens < all; ++r) {
      int const here = frame.tokens_in_round(all, r);
      strided const chunks = dealt(t.block(), t.blocks(), ceil_div(here, frame.shape.chunk_tokens));
      for (int c = chunks.first; c < chunks.end; c += chunks.step) {
        token_range const range = tokens_of_chunk(c, frame.shape.chunk_tokens, here);
        for (int i = range.begin + t.index(); i < range.end; i += t.count())
          bad += keep_routing(t, frame, caller, slots, r * frame.shape.round_tokens + i);
      }
    }
    count(t, frame, tally::ids_out_of_range, bad);
  }

  template <class Rows, team Team, delivery<Team> Net>
  FERRY_FN void send_chunks(Team const& t, Net const& net, std::uint64_t epoch,
                            int num_here) const {
    auto* const maps = reinterpret_cast<std::uint32_t*>(t.block_scratch());
    int const worker = t.index() * Team::lanes + t.lane();
    int const workers = t.count() * Team::lanes;
    int const parts = Rows::parts(frame);
    std::uint64_t const fnuz = Rows::fnuz_ranks(t, frame);
    sent_bytes sent;
    strided const chunks =
        dealt(t.block(), t.blocks(), ceil_div(num_here, frame.shape.chunk_tokens));
    for (int c = chunks.first; c < chunks.end; c += chunks.step) {
      for (int d = worker; d < frame.shape.ranks; d += workers) maps[d] = 0;
      // Also keeps the routing that other teams of this block have copied apart from its readers.
      if (!t.block_all(!t.failed())) break;
      token_range const range = tokens_of_chunk(c, frame.shape.chunk_tokens, num_here);
      int const items = (range.end - range.begin) * parts;
      for (int item = t.index(); item < items; item += t.count()) {
        int const in_chunk = item / parts;
        send_part<Rows>(t, net, {range.begin + in_chunk, item - in_chunk * parts}, fnuz, maps,
                        1u << in_chunk, sent);
        if constexpr (Rows::waits_for_stores) t.drain();
      }
      t.drain();
      t.block_sync();
      if (t.index() == 0) publish_chunk(t, net, c, epoch, maps);
      t.block_sync();
    }
    if (t.leader()) {
      count(t, frame, tally::sent_bytes, sent.others);
      count(t, frame, tally::sent_self_bytes, sent.self);
    }
  }

  template <team Team, delivery<Team> Net>
  FERRY_FN void publish_chunk(Team const& t, Net const& net, int chunk, std::uint64_t epoch,
                              std::uint32_t const* maps) const {
    net.release(t);
    for (int i = t.lane(); i < frame.shape.ranks; i += Team::lanes) {
      int const d = rotated<Team>(i);
      net.publish(t, d, flag::arrived,
                  frame.chunk_flag(flag_field::arrived, frame.shape.rank, chunk),
                  epoch << epoch_shift(flag::arrived) | maps[d]);
    }
  }

  struct sent_bytes {
    std::uint64_t others = 0;
    std::uint64_t self = 0;
  };
  struct token_part {
    int in_round;
    int part;
  };

  template <class Rows, team Team, delivery<Team> Net>
  FERRY_FN void send_part(Team const& t, Net const& net, token_part which, std::uint64_t fnuz,
                          std::uint32_t* maps, std::uint32_t bit, sent_bytes& sent) const {
    exchange_shape const& shape = frame.shape;
    int const token = round * shape.round_tokens + which.in_round;
    Rows const rows(t, frame, {tokens, token_stride, type, scales, scale_stride}, token, which.part,
                    fnuz);
    rows.for_each_rank(t, [&](int d) {
      rows.put(t, net, d, which.in_round);
      if (which.part != 0) return;
      (d == shape.rank ? sent.self : sent.others) +=
          shape.row_bytes + shape.scale_bytes + route_bytes(shape.topk);
      if (t.leader()) t.fetch_add(maps + d, bit);
    });
  }

  // Lanes that publish side by side keep to their own ranks; a single one starts at another rank
  // than its peers do.
  template <class Team>
  FERRY_FN int rotated(int i) const {
    if constexpr (Team::lanes > 1) return i;
    int const d = frame.shape.rank + 1 + i;
    return d < frame.shape.ranks ? d : d - frame.shape.ranks;
  }

 public:
  /// Bytes of scratch that a team needs which is a block by itself.
  static constexpr std::size_t scratch_bytes(exchange_shape const& shape) {
    return row_scratch_bytes(shape) + block_scratch_bytes(shape);
  }
};

}  // namespace ferry
