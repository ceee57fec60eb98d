// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// Two hops with one rule broken at a time, as mutants_test.cpp does it for one.

#include "protocol/found_out.hpp"

namespace ferry::protocol_test {
namespace {

// Ranks 0 and 1 are one node, rank 2 another: rank 0 relays for rank 2, rank 2 for both.
constexpr run_shape two_nodes{
    .ranks = 3, .steps = 24, .ranks_per_node = 2, .release_some = true, .slow_self = false};

relay_frame const& relay_of(stepped_rank const& r) {
  return r.states[0]->relay->frame;
}
bool is_far(stepped_rank const& r, int rank) {
  return !relay_of(r).tables.out[rank].direct();
}
bool is_relays(stepped_rank const& r, std::size_t offset) {
  return offset >= relay_of(r).flags_offset;
}
std::size_t offset_of(stepped_rank const& r, std::uint64_t const* word) {
  return static_cast<std::size_t>(reinterpret_cast<std::byte const*>(word) - r.own());
}
std::size_t done_word(stepped_rank const& r) {
  return r.frame(0).line_head(flag_field::back, r.index);
}
// Whether a word of dispatch is one that a relay stores for a source of another node.
bool is_republished(stepped_rank const& r, flag kind, std::size_t offset) {
  if ((kind != flag::header && kind != flag::arrived) || is_relays(r, offset)) return false;
  step_frame const& f = r.frame(0);
  std::size_t const source = (offset - f.flags_offset) / f.flags.stride(flag_field::arrived);
  return static_cast<int>(source) != r.index;
}

struct skips_a_wait : conduct {
  virtual bool skips(agent const& a, awaited const& what, std::uint64_t const* word) = 0;
  bool wait(agent const& a, awaited const& what, std::uint64_t const* word,
            std::uint64_t& value) override {
    if (!skips(a, what, word)) return conduct::wait(a, what, word, value);
    a.rank.all.order.pause();
    value = *word;
    return !a.rank.all.stopped();
  }
};

// R10: the source waits for its relays' credit.
struct no_wait_for_relay : skips_a_wait {
  bool skips(agent const& a, awaited const& what, std::uint64_t const*) override {
    return what.kind == flag::done && is_far(a.rank, what.rank);
  }
};
TEST(two_hop_mutants, no_rdone) {
  expect_found<no_wait_for_relay>(only_data(two_nodes), {outcome::wrong_data, outcome::stuck});
}

// R10: the relay waits for its node's credit. A rank that sends before it relays has waited for the
// same ranks already, so this shows where a relay works first, as one on a queue of its own might.
struct relays_before_it_sends : skips_a_wait {
  static relay_kernels const& without_forward() {
    static relay_kernels const table = [] {
      relay_kernels all = stepped_relays();
      all.forward = [](cpu_launch const&, forward_rows const&) {};
      return all;
    }();
    return table;
  }
  void begin(stepped_rank& r) override {
    if (r.index == 0) r.core.relays = &without_forward();
  }
  bool step(stepped_rank& r, int n) override {
    relay_slot const& relay = *r.states[0]->relay;
    if (r.index == 0) stepped_relays().forward(launch_of(r, 0), {relay.forwarding, relay.frame});
    return !r.all.stopped() && conduct::step(r, n);
  }
  bool skips(agent const&, awaited const&, std::uint64_t const*) override { return false; }
};
struct no_wait_for_node : relays_before_it_sends {
  bool skips(agent const& a, awaited const& what, std::uint64_t const* word) override {
    return what.kind == flag::done && is_relays(a.rank, offset_of(a.rank, word));
  }
};
TEST(two_hop_mutants, no_ddone) {
  expect_found<no_wait_for_node>(only_data(two_nodes), {outcome::wrong_data, outcome::stuck});
}

// R6: a rank's credit goes to the relay also when none of its source's tokens came.
struct node_done_only_for_tokens : conduct {
  void publish(agent const& a, int to, flag kind, std::size_t offset, std::uint64_t word) override {
    bool sent = kind != flag::done || !is_relays(a.rank, offset);
    if (!sent) {
      relay_frame const& relay = relay_of(a.rank);
      std::size_t const line =
          (offset - relay.back_line(0, 0)) / relay.flags.stride(relay_flag_field::back);
      std::size_t const place = line / static_cast<std::size_t>(relay.shape.members);
      auto const& of_relay = a.rank.all.ranks[static_cast<std::size_t>(to)]->core.paths;
      int const source = of_relay->sources[place];
      step_frame const& f = a.rank.frame(0);
      for (int c = 0; c * f.shape.chunk_tokens < f.memory.seen_tokens[source]; ++c)
        sent = sent || f.memory.maps[f.map_index(source, 0, c)] != 0;
    }
    if (sent) conduct::publish(a, to, kind, offset, word);
  }
};
TEST(two_hop_mutants, ddone_tokens) {
  expect_found<node_done_only_for_tokens>(two_nodes, {outcome::stuck});
}

// R10: a relay's credit goes out always.
struct relay_done_only_for_tokens : conduct {
  void publish(agent const& a, int to, flag kind, std::size_t offset, std::uint64_t word) override {
    bool sent = kind != flag::done || !is_far(a.rank, to);
    if (!sent) {
      relay_frame const& relay = relay_of(a.rank);
      exchange_shape const& shape = a.rank.core.shape;
      int const place = relay.tables.in[to].place;
      for (int c = 0; c * shape.chunk_tokens < relay.memory.tokens[place]; ++c)
        sent = sent || relay.memory.maps[place * shape.round_chunks() + c] != 0;
    }
    if (sent) conduct::publish(a, to, kind, offset, word);
  }
};
TEST(two_hop_mutants, rdone_tokens) {
  expect_found<relay_done_only_for_tokens>(two_nodes, {outcome::stuck});
}

// R10: and after the relay's last read of what the source has written.
struct relay_done_before_republishing : conduct {
  bool wait(agent const& a, awaited const& what, std::uint64_t const* word,
            std::uint64_t& value) override {
    if (!conduct::wait(a, what, word, value)) return false;
    if (what.kind == flag::header && is_relays(a.rank, offset_of(a.rank, word)))
      publish(a, what.rank, flag::done, done_word(a.rank), what.epoch);
    return true;
  }
};
TEST(two_hop_mutants, rdone_early) {
  expect_found<relay_done_before_republishing>(only_data(two_nodes),
                                               {outcome::wrong_data, outcome::stuck});
}

// R10: headers and maps are republished also when empty.
struct republishes_only_tokens : conduct {
  void publish(agent const& a, int to, flag kind, std::size_t offset, std::uint64_t word) override {
    bool const empty = kind == flag::header && (word & 0xFFFFFF) == 0;
    if (!empty || !is_republished(a.rank, kind, offset))
      conduct::publish(a, to, kind, offset, word);
  }
};
TEST(two_hop_mutants, relay_nonempty) {
  expect_found<republishes_only_tokens>(two_nodes, {outcome::stuck});
}
struct republishes_only_maps : conduct {
  void publish(agent const& a, int to, flag kind, std::size_t offset, std::uint64_t word) override {
    bool const empty = kind == flag::arrived && (word & 0xFFFF) == 0;
    if (!empty || !is_republished(a.rank, kind, offset))
      conduct::publish(a, to, kind, offset, word);
  }
};
TEST(two_hop_mutants, relay_nonempty_maps) {
  expect_found<republishes_only_maps>(two_nodes, {outcome::stuck});
}

// R4 on the second hop, R6 on the first one home: the words that a relay stores are released.
template <flag Kind>
struct plain_relay_word : conduct {
  void publish(agent const& a, int to, flag kind, std::size_t offset, std::uint64_t word) override {
    bool const by_relay = kind == flag::back ? is_far(a.rank, to) && !is_relays(a.rank, offset)
                                             : is_republished(a.rank, kind, offset);
    if (kind == Kind && by_relay)
      publish_plainly(a, to, offset, word);
    else
      conduct::publish(a, to, kind, offset, word);
  }
};
// A relay stores to itself at once in these runs, so the other rank of its node must notice.
TEST(two_hop_mutants, plain_relay_ep) {
  expect_found<plain_relay_word<flag::arrived>>(only_data(two_nodes), {outcome::wrong_data});
}
TEST(two_hop_mutants, plain_relay_he) {
  expect_found<plain_relay_word<flag::header>>(only_data(two_nodes), {outcome::wrong_data});
}
TEST(two_hop_mutants, plain_relay_back) {
  expect_found<plain_relay_word<flag::back>>(only_data(two_nodes), {outcome::wrong_data});
}

// The relay looks before it takes: at sources' words, and at its node's.
template <flag Kind>
struct unchecked_by_relay : skips_a_wait {
  bool skips(agent const& a, awaited const& what, std::uint64_t const* word) override {
    return what.kind == Kind && is_relays(a.rank, offset_of(a.rank, word));
  }
};
TEST(two_hop_mutants, relay_ep_nocheck) {
  expect_found<unchecked_by_relay<flag::arrived>>(only_data(two_nodes),
                                                  {outcome::wrong_data, outcome::stuck});
}
TEST(two_hop_mutants, relay_back_nocheck) {
  expect_found<unchecked_by_relay<flag::back>>(only_data(two_nodes), {outcome::wrong_data});
}

// The same runs with the protocol as it is.
TEST(two_hop_mutants, none_passes_the_same_runs) {
  conduct protocol;
  relays_before_it_sends relay_first;
  for (conduct* const habits : {&protocol, static_cast<conduct*>(&relay_first)})
    for (int seed = 1; seed <= 40; ++seed) {
      verdict const v = play(two_nodes, *habits, static_cast<std::uint64_t>(seed));
      ASSERT_EQ(v.what, outcome::right) << to_string(v.what) << ", " << v.text;
    }
}

}  // namespace
}  // namespace ferry::protocol_test
