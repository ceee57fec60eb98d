// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The sending half of dispatch.
#pragma once

#include <ferry/kernels/columns.hpp>
#include <ferry/kernels/route.hpp>
#include <ferry/kernels/step.hpp>
#include <ferry/transport/copy_row.hpp>
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
  std::int32_t num_tokens = 0;  ///< rows given: T, unless that lies in device memory
  std::int32_t const* num_tokens_there = nullptr;
  int round = 0;
  bool header_only = false;  ///< a round of combine: only says that the returned array is free

  template <team Team, delivery<Team> Net>
  FERRY_FN void operator()(Team const& t, Net const& net) const {
    bool const first = round == 0 && !header_only;
    if (!first && (round >= *frame.memory.rounds || (header_only && *frame.memory.rounds == 1)))
      return;
    step_clock const clock(t, frame, phase::send, first);
    std::uint64_t const epoch =
        header_only ? clock.combine(round, *frame.memory.rounds) : clock.dispatch(round);
    if (!wait_for_credit(t, net, epoch - 1)) return;

    int const all = first ? tokens_given(t) : *frame.memory.num_tokens;
    int const left = header_only ? 0 : all - round * frame.shape.round_tokens;
    if (t.block() == 0) {
      if (first) count_experts(t, net, all);
      t.drain();
      t.block_sync();
      publish_header(t, net, epoch, left < 0 ? 0 : left);
    }
    if (first) keep_all_routing(t, all);
    send_chunks(t, net, epoch, frame.tokens_in_round(header_only ? 0 : all, round));
    clock.finish(t);
  }

 private:
  // A host that may read device memory has checked the count; elsewhere it is cut to what is there.
  template <team Team>
  FERRY_FN int tokens_given(Team const& t) const {
    if (!num_tokens_there) return num_tokens;
    int const most = num_tokens < frame.shape.max_tokens ? num_tokens : frame.shape.max_tokens;
    int const said = *num_tokens_there;
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
    for (int token = worker; token < all; token += workers)
      for (int k = 0; k < frame.shape.topk; ++k) {
        std::int64_t const id = caller.id(token, k);
        if (id >= 0 && id < frame.shape.experts) t.fetch_add(counts + id, std::uint32_t{1});
      }
    t.block_sync();
    for (int d = t.index(); d < frame.shape.ranks; d += t.count()) {
      auto const experts = static_cast<std::size_t>(frame.shape.local_experts(d));
      net.put(t, d, frame.at(slot_field::counts, static_cast<std::size_t>(frame.shape.rank)),
              reinterpret_cast<std::byte const*>(counts + frame.shape.first_expert(d)),
              4 * experts);
    }
    if (t.index() == 0 && t.leader()) *frame.memory.num_tokens = all;
  }

  template <team Team, delivery<Team> Net>
  FERRY_FN void publish_header(Team const& t, Net const& net, std::uint64_t epoch, int left) const {
    if (t.index() != 0) return;
    net.release(t);
    for (int i = t.lane(); i < frame.shape.ranks; i += Team::lanes)
      net.publish(t, rotated(i), flag::header,
                  frame.line_head(flag_field::arrived, frame.shape.rank),
                  epoch << epoch_shift(flag::header) | static_cast<std::uint64_t>(left));
  }

  // This block's tokens of all rounds: later rounds and the gather read the copy, not the caller's.
  template <team Team>
  FERRY_FN void keep_all_routing(Team const& t, int all) const {
    std::uint64_t bad = 0;
    for (int r = 0; r * frame.shape.round_tokens < all; ++r) {
      int const here = frame.tokens_in_round(all, r);
      strided const chunks = dealt(t.block(), t.blocks(), ceil_div(here, frame.shape.chunk_tokens));
      for (int c = chunks.first; c < chunks.end; c += chunks.step) {
        token_range const range = tokens_of_chunk(c, frame.shape.chunk_tokens, here);
        for (int i = range.begin + t.index(); i < range.end; i += t.count())
          bad += keep_routing(t, frame, caller, r * frame.shape.round_tokens + i);
      }
    }
    count(t, frame, tally::ids_out_of_range, bad);
  }

  template <team Team, delivery<Team> Net>
  FERRY_FN void send_chunks(Team const& t, Net const& net, std::uint64_t epoch,
                            int num_here) const {
    std::uint32_t* const maps =
        frame.memory.chunk_maps +
        static_cast<std::size_t>(t.block()) * static_cast<std::size_t>(frame.shape.ranks);
    int const worker = t.index() * Team::lanes + t.lane();
    int const workers = t.count() * Team::lanes;
    sent_bytes sent;
    strided const chunks =
        dealt(t.block(), t.blocks(), ceil_div(num_here, frame.shape.chunk_tokens));
    for (int c = chunks.first; c < chunks.end && !t.failed(); c += chunks.step) {
      for (int d = worker; d < frame.shape.ranks; d += workers) maps[d] = 0;
      t.block_sync();
      token_range const range = tokens_of_chunk(c, frame.shape.chunk_tokens, num_here);
      for (int i = range.begin + t.index(); i < range.end; i += t.count())
        send_token(t, net, i, maps, 1u << (i - range.begin), sent);
      t.drain();
      t.block_sync();
      if (t.index() == 0) {
        net.release(t);
        for (int i = t.lane(); i < frame.shape.ranks; i += Team::lanes) {
          int const d = rotated(i);
          net.publish(t, d, flag::arrived,
                      frame.chunk_flag(flag_field::arrived, frame.shape.rank, c),
                      epoch << epoch_shift(flag::arrived) | maps[d]);
        }
      }
      t.block_sync();
    }
    if (t.leader()) {
      count(t, frame, tally::sent_bytes, sent.others);
      count(t, frame, tally::sent_self_bytes, sent.self);
    }
  }

  struct sent_bytes {
    std::uint64_t others = 0;
    std::uint64_t self = 0;
  };

  template <team Team, delivery<Team> Net>
  FERRY_FN void send_token(Team const& t, Net const& net, int in_round, std::uint32_t* maps,
                           std::uint32_t bit, sent_bytes& sent) const {
    exchange_shape const& shape = frame.shape;
    int const token = round * shape.round_tokens + in_round;
    routing const route = routing_of(frame, token);
    if (route.next_rank(-1) < 0) return;
    row_place const ready = wire_row(t, token);
    // Ascending, but starting after this rank: or every source would load the same link at first.
    for (int pass = 0; pass < 2; ++pass) {
      int d = pass == 0 ? shape.rank : -1;
      while ((d = route.next_rank(d)) >= 0 && (pass == 0 || d <= shape.rank)) {
        net.put(t, d, frame.at(slot_field::rows, shape.rank, in_round), ready.row, shape.row_bytes);
        if (shape.scale_bytes)
          net.put(t, d, frame.at(slot_field::scales, shape.rank, in_round),
                  ready.fnuz_scales && frame.memory.receives_fnuz[d] != std::byte{0}
                      ? ready.fnuz_scales
                      : ready.scales,
                  shape.scale_bytes);
        put_route(t, net, route, d, in_round);
        if (t.leader()) {
          t.fetch_add(maps + d, bit);
          (d == shape.rank ? sent.self : sent.others) +=
              shape.row_bytes + shape.scale_bytes + route_bytes(shape.topk);
        }
      }
    }
  }

  // The row in wire format: where it lies, if it is in that format already, else in team scratch.
  template <team Team>
  FERRY_FN row_place wire_row(Team const& t, int token) const {
    exchange_shape const& shape = frame.shape;
    std::byte const* const from = tokens + token * token_stride;
    if (shape.sent == wire::opaque)
      return {const_cast<std::byte*>(from),
              scales ? const_cast<std::byte*>(scales + token * scale_stride) : nullptr, nullptr};
    if (element_of(shape.sent) == type) return {const_cast<std::byte*>(from), nullptr, nullptr};
    std::byte* const to = t.row_scratch();
    std::byte* const to_scales = to + round_up(shape.row_bytes, row_align);
    row_place const place{to, to_scales,
                          shape.sent == wire::fp8_ue8m0
                              ? to_scales + round_up(shape.scale_bytes, row_align)
                              : nullptr};
    visit_float_type(type, [&]<class T>(T) {
      for_each_tile(t, shape.hidden, [&](int column, int n) {
        float v[Team::columns];
        load_columns<T>(from, column, n, v);
        store_wire(t, shape.sent, place, column, n, v);
      });
    });
    t.sync();
    return place;
  }

  // The choices in d's own numbering, then the weights.
  template <team Team, delivery<Team> Net>
  FERRY_FN void put_route(Team const& t, Net const& net, routing const& route, int d,
                          int in_round) const {
    int const first = frame.shape.first_expert(d);
    auto* const words =
        reinterpret_cast<std::int32_t*>(t.row_scratch() + scratch_for_route(frame.shape));
    auto* const weights = reinterpret_cast<float*>(words + frame.shape.topk);
    t.sync();
    for (int k = t.lane(); k < frame.shape.topk; k += Team::lanes) {
      words[k] = route.rank(k) == d ? route.choices[k] - first : not_here;
      weights[k] = route.weights[k];
    }
    t.sync();
    net.put(t, d, frame.at(slot_field::routes, frame.shape.rank, in_round),
            reinterpret_cast<std::byte const*>(words), route_bytes(frame.shape.topk));
  }

  FERRY_FN int rotated(int i) const {
    int const d = frame.shape.rank + 1 + i;
    return d < frame.shape.ranks ? d : d - frame.shape.ranks;
  }

 public:
  /// Where a team's scratch holds the route: behind a row and two sets of scales.
  FERRY_FN static constexpr std::size_t scratch_for_route(exchange_shape const& shape) {
    return round_up(shape.row_bytes, row_align) + 2 * round_up(shape.scale_bytes, row_align);
  }
  /// Bytes of scratch that each team needs, for sending and for returning.
  static constexpr std::size_t scratch_bytes(exchange_shape const& shape) {
    std::size_t const home = round_up(shape.home_bytes, row_align) + shape.home_scale_bytes;
    std::size_t const out = scratch_for_route(shape) + route_bytes(shape.topk);
    return home > out ? home : out;
  }
};

}  // namespace ferry
