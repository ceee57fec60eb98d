// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// The protocol with one rule broken at a time. Each of these must be found out, or the tests would
// not notice if the exchange broke that rule. Every mutant replaces what ranks do at one point; the
// kernels are the exchange's own.

#include "protocol/found_out.hpp"

#include <map>

namespace ferry::protocol_test {
namespace {

std::size_t done_word(stepped_rank const& r) {
  return r.frame(0).line_head(flag_field::back, r.index);
}

// R6: `done` after the last read of the source's rows.
struct done_before_rows_are_read : conduct {
  bool wait(agent const& a, awaited const& what, std::uint64_t const* word,
            std::uint64_t& value) override {
    if (!conduct::wait(a, what, word, value)) return false;
    if (what.kind == flag::header) publish(a, what.rank, flag::done, done_word(a.rank), what.epoch);
    return true;
  }
};
TEST(mutants, done_early) {
  expect_found<done_before_rows_are_read>(only_data(small), {outcome::wrong_data, outcome::stuck});
}
// The kernel is through with the chunk, but experts that work in place are not. What holds the
// source back in most steps is that it waits for its results, so this shows only after a release.
struct done_before_experts : conduct {
  bool wait(agent const& a, awaited const& what, std::uint64_t const* word,
            std::uint64_t& value) override {
    if (!conduct::wait(a, what, word, value)) return false;
    if (what.kind == flag::arrived)
      publish(a, what.rank, flag::done, done_word(a.rank), what.epoch);
    return true;
  }
};
run_shape in_place_and_released() {
  run_shape shape = only_data(small);
  shape.max_tokens = 1;
  shape.layout = layout::in_place;
  shape.release_some = true;
  return shape;
}
TEST(mutants, done_early_while_experts_read_the_inbox) {
  expect_found<done_before_experts>(in_place_and_released(), {outcome::wrong_data});
}

// R6: whoever sends `done` before the return needs its own copy of T and the maps.
struct words_read_after_done : conduct {
  void publish(agent const& a, int to, flag kind, std::size_t offset, std::uint64_t word) override {
    conduct::publish(a, to, kind, offset, word);
    if (kind != flag::done || to + 1 != a.rank.all.shape.ranks) return;
    // Slow enough for a source that waits for nothing from here to come with its next step.
    for (int i = 0; i < 40; ++i) a.rank.all.order.pause();
    step_frame const& f = a.rank.frame(0);
    for (int s = 0; s < f.shape.ranks; ++s) {
      f.memory.seen_tokens[s] =
          static_cast<std::int32_t>(read(a.rank, f.line_head(flag_field::arrived, s)) & 0xFFFFFFu);
      for (int c = 0; c < f.shape.round_chunks(); ++c)
        f.memory.maps[f.map_index(s, 0, c)] = static_cast<std::uint16_t>(
            read(a.rank, f.chunk_flag(flag_field::arrived, s, c)) & 0xFFFFu);
    }
  }
  static std::uint64_t read(stepped_rank const& r, std::size_t offset) {
    r.all.order.pause();
    return *reinterpret_cast<std::uint64_t const*>(r.own() + offset);
  }
};
// What is returned by mistake goes to a token of the next step. With per_choice a third rank may
// serve that choice, and its row be overwritten.
run_shape three_ranks_per_choice() {
  run_shape shape = only_data(small);
  shape.ranks = 3;
  shape.reduction = reduction::per_choice;
  return shape;
}
TEST(mutants, done_nowords) {
  expect_found<words_read_after_done>(three_ranks_per_choice(), {outcome::wrong_data});
}

// R6: `done` to every source, also to one that sent nothing.
struct done_only_for_tokens : conduct {
  void publish(agent const& a, int to, flag kind, std::size_t offset, std::uint64_t word) override {
    step_frame const& f = a.rank.frame(0);
    bool sent = kind != flag::done;
    for (int c = 0; c * f.shape.chunk_tokens < f.memory.seen_tokens[to]; ++c)
      sent = sent || f.memory.maps[f.map_index(to, 0, c)] != 0;
    if (sent) conduct::publish(a, to, kind, offset, word);
  }
};
TEST(mutants, done_only_tokens) {
  expect_found<done_only_for_tokens>(small, {outcome::stuck});
}

// R4, R6: words are released.
template <flag Kind>
struct plain_word : conduct {
  void publish(agent const& a, int to, flag kind, std::size_t offset, std::uint64_t word) override {
    if (kind == Kind)
      publish_plainly(a, to, offset, word);
    else
      conduct::publish(a, to, kind, offset, word);
  }
};
TEST(mutants, plain_ep) {
  expect_found<plain_word<flag::arrived>>(only_data(small), {outcome::wrong_data});
}
TEST(mutants, plain_he) {
  expect_found<plain_word<flag::header>>(only_data(small), {outcome::wrong_data});
}
TEST(mutants, plain_back) {
  expect_found<plain_word<flag::back>>(only_data(small), {outcome::wrong_data});
}

// The wait is skipped, and the word taken as it is.
template <flag Kind>
struct unchecked_word : conduct {
  bool wait(agent const& a, awaited const& what, std::uint64_t const* word,
            std::uint64_t& value) override {
    if (what.kind != Kind) return conduct::wait(a, what, word, value);
    a.rank.all.order.pause();
    value = *word;
    return !a.rank.all.stopped();
  }
};
// R3
TEST(mutants, nowait) {
  expect_found<unchecked_word<flag::done>>(only_data(small), {outcome::wrong_data, outcome::stuck});
}
// A run may end in wrong data first. One must end in the check that exchanges carry themselves.
TEST(mutants, nowait_shows_as_an_epoch_ahead) {
  for (int seed = 1; seed <= most_runs; ++seed) {
    unchecked_word<flag::done> mutant;
    verdict const v = play(small, mutant, static_cast<std::uint64_t>(seed));
    if (v.what != outcome::ahead) continue;
    std::cout << to_string(v.what) << ", " << v.text << "\n";
    return;
  }
  ADD_FAILURE() << "no epoch ahead in " << most_runs << " runs";
}
// R5
TEST(mutants, hdr_nocheck) {
  expect_found<unchecked_word<flag::header>>(only_data(small),
                                             {outcome::wrong_data, outcome::stuck});
}
TEST(mutants, ep_nocheck) {
  expect_found<unchecked_word<flag::arrived>>(only_data(small), {outcome::wrong_data});
}
TEST(mutants, back_nocheck) {
  expect_found<unchecked_word<flag::back>>(only_data(small), {outcome::wrong_data});
}

// R4: the map is part of the word, or was there before it.
struct map_after_epoch : conduct {
  std::map<std::pair<int, std::size_t>, std::uint64_t> last;
  void publish(agent const& a, int to, flag kind, std::size_t offset, std::uint64_t word) override {
    if (kind == flag::arrived) {
      std::uint64_t& map = last[{to * 16 + a.rank.index, offset}];
      conduct::publish(a, to, kind, offset, (word & ~std::uint64_t{0xFFFF}) | map);
      map = word & 0xFFFF;
      publish_plainly(a, to, offset, word);
    } else {
      conduct::publish(a, to, kind, offset, word);
    }
  }
};
TEST(mutants, bm_after_ep) {
  expect_found<map_after_epoch>(only_data(small), {outcome::wrong_data, outcome::stuck});
}

// R4: the header covers the expert counts.
struct counts_after_header : conduct {
  struct late {
    int to;
    std::size_t offset;
    std::vector<std::byte> bytes;
  };
  std::map<int, std::vector<late>> kept;
  void put(agent const& a, int to, std::size_t offset, std::byte const* from,
           std::size_t bytes) override {
    step_frame const& f = a.rank.frame(0);
    if (offset == f.at(slot_field::counts, static_cast<std::size_t>(a.rank.index)))
      kept[a.rank.index].push_back({to, offset, {from, from + bytes}});
    else
      conduct::put(a, to, offset, from, bytes);
  }
  void publish(agent const& a, int to, flag kind, std::size_t offset, std::uint64_t word) override {
    conduct::publish(a, to, kind, offset, word);
    if (kind != flag::header) return;
    for (late const& l : kept[a.rank.index])
      if (l.to == to) conduct::put(a, to, l.offset, l.bytes.data(), l.bytes.size());
    std::erase_if(kept[a.rank.index], [&](late const& l) { return l.to == to; });
  }
};
TEST(mutants, counts_after_header) {
  expect_found<counts_after_header>(only_data(small), {outcome::wrong_data, outcome::stuck});
}

// R4: the header always, and a word for every chunk of the source's tokens.
struct header_only_with_tokens : conduct {
  void publish(agent const& a, int to, flag kind, std::size_t offset, std::uint64_t word) override {
    if (kind != flag::header || (word & 0xFFFFFF) != 0) conduct::publish(a, to, kind, offset, word);
  }
};
TEST(mutants, hdr_only_t) {
  expect_found<header_only_with_tokens>(small, {outcome::stuck});
}
struct word_only_with_tokens : conduct {
  void publish(agent const& a, int to, flag kind, std::size_t offset, std::uint64_t word) override {
    if (kind != flag::arrived || (word & 0xFFFF) != 0) conduct::publish(a, to, kind, offset, word);
  }
};
TEST(mutants, arr_only_bits) {
  expect_found<word_only_with_tokens>(small, {outcome::stuck});
}

// R2, R3: dispatch of step n + 1 before the returned rows of step n were read. It keeps the routing
// of step n (R7), so that only the rows can be wrong.
struct dispatch_before_gather : conduct {
  struct kept_routing {
    std::vector<std::int32_t> choices;
    std::vector<float> weights;
    std::int32_t num_tokens = 0;
    step_plan plan;
  };
  static kept_routing keep(stepped_rank const& r) {
    step_memory const& m = r.frame(0).memory;
    auto const n = static_cast<std::size_t>(r.core.shape.max_tokens * topk);
    return {{m.choices, m.choices + n}, {m.weights, m.weights + n}, *m.num_tokens, r.plans[0]};
  }
  bool step(stepped_rank& r, int n) override {
    if (n == 1 && !send(r, 0, n)) return false;
    if (!receive(r, 0, n) || !give_back(r, 0, n)) return false;
    kept_routing of_this = keep(r);
    bool const more = n < r.all.shape.steps;
    if (more) {
      r.states[0]->at = microbatch::state::stage::idle;
      if (!send(r, 0, n + 1)) return false;
    }
    kept_routing const of_next = keep(r);
    step_plan const next_plan = r.plans[0];
    step_frame frame = r.frame(0);
    frame.memory.choices = of_this.choices.data();
    frame.memory.weights = of_this.weights.data();
    frame.memory.num_tokens = &of_this.num_tokens;
    r.plans[0] = of_this.plan;
    r.output[0].assign(static_cast<std::size_t>(of_this.plan.tokens) * hidden, -1.0f);
    gather_rows gathering;
    gathering.frame = frame;
    gathering.output = reinterpret_cast<std::byte*>(r.output[0].data());
    gathering.output_stride = hidden * sizeof(float);
    gathering.type = dtype::f32;
    stepped_kernels().gather(launch_of(r, 0), gathering);
    if (!r.all.stopped()) r.all.check_output(r, 0, n);
    r.plans[0] = next_plan;
    r.states[0]->at = more ? microbatch::state::stage::sent : microbatch::state::stage::idle;
    return !r.all.stopped();
  }
};
TEST(mutants, early_dispatch) {
  expect_found<dispatch_before_gather>(only_data(small), {outcome::wrong_data});
}

// R2: every step is returned, or released.
struct step_without_return : conduct {
  bool give_back(stepped_rank& r, int slot, int n) override {
    if ((n + r.index) % 5 != 0) return conduct::give_back(r, slot, n);
    microbatch::state& s = *r.states[static_cast<std::size_t>(slot)];
    s.at = microbatch::state::stage::returned;
    s.frame.memory.ticks[static_cast<int>(phase::give_back)] += s.frame.shape.step_epochs();
    return true;
  }
};
TEST(mutants, skip_csend) {
  expect_found<step_without_return>(small, {outcome::stuck});
}

// R1: windows are zeroed before a barrier, not by a rank that starts when it likes.
struct window_zeroed_late : conduct {
  void begin(stepped_rank& r) override {
    r.all.order.pause();
    std::fill(r.own(), r.own() + r.memory.size(), std::byte{0});
  }
};
TEST(mutants, late_zero) {
  expect_found<window_zeroed_late>(small, {outcome::stuck, outcome::wrong_data});
}

// Steps in rounds go through the same inbox: each round needs its own credit, both ways.
constexpr run_shape in_rounds{.steps = 12,
                              .max_tokens = 4,
                              .round_tokens = 1,
                              .release_some = false,
                              .slow_self = false,
                              .check_ahead = false};
struct round_without_credit : conduct {
  bool wait(agent const& a, awaited const& what, std::uint64_t const* word,
            std::uint64_t& value) override {
    std::uint64_t const in_step = what.epoch % a.rank.core.shape.step_epochs();
    if (what.kind != flag::done || in_step == 0) return conduct::wait(a, what, word, value);
    a.rank.all.order.pause();
    value = *word;
    return !a.rank.all.stopped();
  }
};
TEST(mutants, round_without_credit) {
  expect_found<round_without_credit>(in_rounds, {outcome::wrong_data, outcome::stuck});
}
struct returned_without_room : conduct {
  bool wait(agent const& a, awaited const& what, std::uint64_t const* word,
            std::uint64_t& value) override {
    exchange_shape const& shape = a.rank.core.shape;
    auto const rounds = static_cast<std::uint64_t>(shape.max_rounds());
    bool const of_combine = (what.epoch - 1) % shape.step_epochs() >= rounds;
    if (what.kind != flag::header || !of_combine) return conduct::wait(a, what, word, value);
    a.rank.all.order.pause();
    value = *word;
    return !a.rank.all.stopped();
  }
};
TEST(mutants, round_returned_before_the_array_was_read) {
  expect_found<returned_without_room>(in_rounds, {outcome::wrong_data});
}

// The same runs with the protocol as it is.
TEST(mutants, none_passes_the_same_runs) {
  for (run_shape const& shape :
       {small, only_data(small), in_rounds, in_place_and_released(), three_ranks_per_choice()})
    for (int seed = 1; seed <= 40; ++seed) {
      conduct protocol;
      verdict const v = play(shape, protocol, static_cast<std::uint64_t>(seed));
      ASSERT_EQ(v.what, outcome::right) << to_string(v.what) << ", " << v.text;
    }
}

}  // namespace
}  // namespace ferry::protocol_test
