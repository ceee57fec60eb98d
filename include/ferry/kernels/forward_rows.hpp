// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The second hop of dispatch: a relay republishes what sources of other nodes have sent to it.
#pragma once

#include <ferry/base/block_scale.hpp>
#include <ferry/kernels/relay.hpp>
#include <ferry/kernels/route.hpp>
#include <ferry/transport/delivery.hpp>

namespace ferry {

/// Writes the records of each source into the inboxes of this node's ranks, at the same places and
/// with the same bits as if the source had done it.
///
/// Per source: its header, then each rank's credit for this source (R10); the header word with the
/// counts, also for 0 tokens; per chunk, also an empty one, the source's word, the records, the
/// chunk's word. What the way home needs is kept in private memory: after this kernel nothing reads
/// what the source has written.
///
/// A block works on one source at a time, or on some of its chunks. It waits for sources and for
/// ranks' credit of the step before, never for another block of the launch, so any number of blocks
/// comes to its end.
struct forward_rows {
  step_frame own;  ///< of the step, but its ticks are the relay's
  relay_frame relay;

  FERRY_FN step_frame const& frame() const { return own; }

  template <team Team, delivery<Team> Net>
  FERRY_FN void operator()(Team const& t, Net const& net) const {
    step_clock const clock(t, own, phase::send, true);
    std::uint64_t const epoch = clock.dispatch(0);
    if (relay.tables.num_sources > 0) {
      receiving_part const part =
          receiving_part_of(t.block(), t.blocks(), relay.tables.num_sources);
      for (int i = part.sources.first; i < part.sources.end; i += part.sources.step)
        if (!forward_source(t, net, i, part, epoch)) break;
    }
    clock.finish(t);
  }

 private:
  template <team Team, delivery<Team> Net>
  FERRY_FN bool forward_source(Team const& t, Net const& net, int place, receiving_part const& part,
                               std::uint64_t epoch) const {
    int const source = relay.tables.sources[place];
    std::uint64_t header = 0;
    bool const there =
        t.wait({flag::header, source, -1, epoch}, own_word(net, relay.arrived_line(place)), header);
    if (!t.block_all(there && wait_for_credit(t, net, place, epoch - 1))) return false;
    int const tokens = static_cast<int>(header & ((1u << epoch_shift(flag::header)) - 1));
    if (part.share == 0) forward_header(t, net, place, source, header, tokens);
    int const chunks = ceil_div(tokens, own.shape.chunk_tokens);
    for (int c = part.share; c < chunks; c += part.shares)
      if (!forward_chunk(t, net, place, source, c, tokens, epoch)) return false;
    return t.block_all(!t.failed());
  }

  // R10: nobody of this node still reads what is about to be overwritten.
  template <team Team, class Net>
  FERRY_FN bool wait_for_credit(Team const& t, Net const& net, int place,
                                std::uint64_t epoch) const {
    bool ok = true;
    for (int j = t.lane(); j < relay.tables.num_members && ok; j += Team::lanes) {
      std::uint64_t seen;
      ok = t.wait({flag::done, relay.tables.members[j], -1, epoch},
                  own_word(net, relay.back_line(place, j)), seen);
    }
    return ok;
  }

  template <team Team, delivery<Team> Net>
  FERRY_FN void forward_header(Team const& t, Net const& net, int place, int source,
                               std::uint64_t word, int tokens) const {
    for (int j = t.index(); j < relay.tables.num_members; j += t.count()) {
      int const d = relay.tables.members[j];
      net.put(t, d, own.at(slot_field::counts, static_cast<std::size_t>(source)),
              net.own_rows() + relay.at(relay_field::counts, relay.pair(place, j)),
              4 * static_cast<std::size_t>(own.shape.local_experts(d)));
    }
    if (t.index() == 0 && t.leader()) relay.memory.tokens[place] = tokens;
    t.drain();
    t.block_sync();
    if (t.index() != 0) return;
    net.release(t);
    for (int j = 0; j < relay.tables.num_members; ++j) {
      int const d = relay.tables.members[j];
      if (t.lane() == d % Team::lanes)
        net.publish(t, d, flag::header, own.line_head(flag_field::arrived, source), word);
    }
  }

  template <team Team, delivery<Team> Net>
  FERRY_FN bool forward_chunk(Team const& t, Net const& net, int place, int source, int chunk,
                              int tokens, std::uint64_t epoch) const {
    auto* const maps = reinterpret_cast<std::uint32_t*>(t.block_scratch());
    int const worker = t.index() * Team::lanes + t.lane();
    for (int j = worker; j < relay.tables.num_members; j += t.count() * Team::lanes) maps[j] = 0;
    std::uint64_t word = 0;
    bool const there = t.wait({flag::arrived, source, chunk, epoch},
                              own_word(net, chunk_word(relay.arrived_line(place), chunk)), word);
    if (!t.block_all(there)) return false;
    auto const map = static_cast<std::uint32_t>(word & 0xFFFFu);
    if (t.index() == 0 && t.leader())
      relay.memory.maps[place * own.shape.round_chunks() + chunk] = static_cast<std::uint16_t>(map);
    token_range const range = tokens_of_chunk(chunk, own.shape.chunk_tokens, tokens);
    for (int i = range.begin + t.index(); i < range.end; i += t.count())
      if ((map >> (i - range.begin) & 1) != 0)
        forward_record(t, net, place, source, i, maps, 1u << (i - range.begin));
    t.drain();
    t.block_sync();
    if (t.index() == 0) {
      net.release(t);
      for (int j = 0; j < relay.tables.num_members; ++j) {
        int const d = relay.tables.members[j];
        if (t.lane() == d % Team::lanes)
          net.publish(t, d, flag::arrived, own.chunk_flag(flag_field::arrived, source, chunk),
                      epoch << epoch_shift(flag::arrived) | maps[j]);
      }
    }
    t.block_sync();
    return true;
  }

  template <team Team, delivery<Team> Net>
  FERRY_FN void forward_record(Team const& t, Net const& net, int place, int source, int token,
                               std::uint32_t* maps, std::uint32_t bit) const {
    exchange_shape const& shape = own.shape;
    std::size_t const record = relay_frame::record(shape, place, token);
    std::byte const* const from = net.own_rows();
    auto const* const choices =
        reinterpret_cast<std::int32_t const*>(from + relay.at(relay_field::routes, record));
    auto const* const weights = reinterpret_cast<float const*>(choices + shape.topk);
    std::int32_t* const kept =
        relay.memory.choices +
        (static_cast<std::size_t>(place) * static_cast<std::size_t>(shape.max_tokens) +
         static_cast<std::size_t>(token)) *
            static_cast<std::size_t>(shape.topk);
    for (int k = t.lane(); k < shape.topk; k += Team::lanes) kept[k] = choices[k];
    t.sync();
    routing const route{kept, weights, own.memory.owners, shape.topk};
    for (int d = route.next_rank(-1); d >= 0; d = route.next_rank(d)) {
      net.put(t, d, own.at(slot_field::rows, source, token),
              from + relay.at(relay_field::rows, record), shape.row_bytes);
      if (shape.scale_bytes)
        net.put(t, d, own.at(slot_field::scales, source, token),
                scales_for(t, d, from + relay.at(relay_field::scales, record)), shape.scale_bytes);
      put_route(t, net, d, source, token, route);
      if (t.leader()) t.fetch_add(maps + relay.tables.member[d], bit);
    }
  }

  // Scales come as a receiver of OCP codes takes them.
  template <team Team>
  FERRY_FN std::byte const* scales_for(Team const& t, int d, std::byte const* scales) const {
    if (own.shape.sent != wire::fp8_ue8m0 || own.memory.receives_fnuz[d] == std::byte{0})
      return scales;
    std::byte* const made = t.row_scratch() + round_up(own.shape.row_bytes, row_align);
    t.sync();
    for (int b = t.lane(); b < static_cast<int>(own.shape.scale_bytes); b += Team::lanes)
      made[b] = static_cast<std::byte>(
          exponent_for_fnuz(e8m0{static_cast<std::uint8_t>(scales[b])}).bits);
    t.sync();
    return made;
  }

  // The choices in d's own numbering, then the weights.
  template <team Team, delivery<Team> Net>
  FERRY_FN void put_route(Team const& t, Net const& net, int d, int source, int token,
                          routing const& route) const {
    int const first = own.shape.first_expert(d);
    auto* const words =
        reinterpret_cast<std::int32_t*>(t.row_scratch() + round_up(own.shape.row_bytes, row_align) +
                                        2 * round_up(own.shape.scale_bytes, row_align));
    auto* const weights = reinterpret_cast<float*>(words + own.shape.topk);
    t.sync();
    for (int k = t.lane(); k < own.shape.topk; k += Team::lanes) {
      words[k] = route.rank(k) == d ? route.choices[k] - first : not_here;
      weights[k] = route.weights[k];
    }
    t.sync();
    net.put(t, d, own.at(slot_field::routes, source, token),
            reinterpret_cast<std::byte const*>(words), route_bytes(own.shape.topk));
  }
};

}  // namespace ferry
