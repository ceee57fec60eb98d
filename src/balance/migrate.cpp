// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/balance/migrate.hpp>

#include <ferry/balance/apply_placement.hpp>
#include <ferry/group.hpp>

#include "balance/move_plan.hpp"
#include "balance/move_window.hpp"
#include "base/fail.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace ferry {

struct migration::state {
  exchange& ep;
  expert_store& store;
  migration_options options;
  group ranks;
  shared_windows windows;
  move_window in_window;
  placement present;
  migration_counters counted;

  // Of the migration that is under way.
  std::vector<move_round> rounds;  ///< those that remain; the first one runs
  placement target;
  std::optional<expert_loads> loads;

  // Of its round.
  std::uint64_t number = 0;  ///< of rounds since the windows were made
  std::int64_t steps_left = 0;
  std::vector<expert_move> outgoing, incoming;
  std::size_t next_out = 0;         ///< of outgoing
  std::size_t offset = 0;           ///< within it
  byte_sum sum;                     ///< of it so far
  std::vector<std::uint64_t> sent;  ///< to each rank, bytes
  std::size_t next_in = 0;          ///< of incoming: those before are laid aside
  std::vector<std::uint64_t> due;   ///< of incoming: bytes of its source when it is there
  std::vector<std::byte> part;
  result<void> wrong;  ///< here; told at the end of the round, so that all ranks learn of it

  state(exchange& e, expert_store& s, placement const& p, migration_options const& o)
      : ep(e), store(s), options(o), ranks(e.ranks()), present(p) {}

  int rank() const { return ranks.rank(); }
  std::byte* window_of(int r) const { return windows.windows[static_cast<std::size_t>(r)].data(); }
  own_slot local(int layer, int slot) const { return {layer, slot - present.first_slot(rank())}; }

  result<void> check() const;
  result<void> make_windows();
  void begin_round();
  result<void> send_part();
  result<void> take(bool all);
  result<void> take_one(expert_move const& m);
  result<bool> end_round();
  error lost_in_agreement();
  result<void> change();
  void stop();
};

result<void> migration::state::check() const {
  FERRY_CHECK(check_fits(ep, present));
  if (options.bytes_per_step < 8)
    return fail(error_code::invalid_argument, "bytes_per_step is {}; it must be 8 or more",
                options.bytes_per_step);
  if (store.spare_slots() < 1 || store.expert_bytes() < 1 ||
      store.expert_bytes() >= std::size_t{1} << 32)
    return fail(error_code::invalid_argument,
                "a store of {} spare slots for experts of {} bytes; 1 or more of less than 4 GiB",
                store.spare_slots(), store.expert_bytes());
  return {};
}

result<void> migration::state::make_windows() {
  FERRY_CHECK(ranks.agree(check()));
  // The windows' layout, and how long a round takes, follow from these.
  std::uint64_t const mine[] = {static_cast<std::uint64_t>(store.spare_slots()),
                                store.expert_bytes(), options.bytes_per_step};
  FERRY_TRY(auto const all, ranks.all_gather(std::as_bytes(std::span(mine))));
  for (int r = 0; r < ranks.size(); ++r) {
    bytes const& theirs = all[static_cast<std::size_t>(r)];
    if (theirs.size() != sizeof mine || std::memcmp(theirs.data(), mine, sizeof mine) != 0)
      return fail(error_code::invalid_argument,
                  "rank {} has other spare slots, bytes of an expert or bytes per step than rank "
                  "{}: {}, {} and {}",
                  r, rank(), mine[0], mine[1], mine[2]);
  }
  in_window = move_window(ranks.size(), store.spare_slots(), store.expert_bytes());
  FERRY_TRY(windows, ranks.share_window(in_window.bytes()));
  result<void> mapped;
  for (int r = 0; r < ranks.size() && mapped; ++r)
    if (!window_of(r))
      mapped = fail(error_code::unsupported,
                    "rank {} cannot be mapped ({}), and experts move through mapped windows alone",
                    r, windows.why[static_cast<std::size_t>(r)]);
  FERRY_CHECK(ranks.agree(mapped));
  // No more is ever sent in one step, however many bytes may be.
  std::size_t const most =
      static_cast<std::size_t>(store.spare_slots()) * ((store.expert_bytes() + 7) / 8 * 8);
  part.resize((std::min(options.bytes_per_step, most) + 7) / 8 * 8);
  return {};
}

void migration::state::begin_round() {
  ++number;
  outgoing.clear();
  incoming.clear();
  due.clear();
  next_out = next_in = offset = 0;
  sum = {};
  wrong = {};
  sent.assign(static_cast<std::size_t>(ranks.size()), 0);
  std::vector<std::uint64_t> from(sent), out(sent);
  for (expert_move const& m : rounds.front().moves) {
    if (m.from_rank == rank()) outgoing.push_back(m);
    // As send_part counts: an expert's last bytes take a multiple of 8.
    out[static_cast<std::size_t>(m.from_rank)] += (store.expert_bytes() + 7) / 8 * 8;
    if (m.to_rank != rank()) continue;
    incoming.push_back(m);
    due.push_back(from[static_cast<std::size_t>(m.from_rank)] += store.expert_bytes());
  }
  std::uint64_t const most = *std::max_element(out.begin(), out.end());
  steps_left = static_cast<std::int64_t>((most + part.size() - 1) / part.size());
}

/// Up to the step's bytes, which may be the end of one expert and the beginning of another.
result<void> migration::state::send_part() {
  std::size_t budget = part.size();
  while (next_out < outgoing.size() && budget > 0) {
    expert_move const& m = outgoing[next_out];
    std::byte* const to = window_of(m.to_rank);
    std::size_t const size = std::min(budget, store.expert_bytes() - offset);
    std::span<std::byte> const bytes = std::span(part).first(size);
    FERRY_CHECK(store.read(local(m.layer, m.from_slot), offset, bytes));
    sum.add(bytes);
    std::memcpy(in_window.expert(to, m.spare) + offset, bytes.data(), size);
    offset += size;
    // What is left of the budget stays a multiple of 8, as byte_sum wants it.
    budget -= std::min(budget, (size + 7) / 8 * 8);
    counted.bytes_sent += size;
    if (offset == store.expert_bytes()) {
      in_window.sum(to, m.spare) = sum.value();
      ++counted.experts_sent;
      ++next_out;
      offset = 0;
      sum = {};
    }
    std::uint64_t const so_far = sent[static_cast<std::size_t>(m.to_rank)] += size;
    in_window.sent(to, rank())
        .store(move_window::progress(number, so_far), std::memory_order_release);
  }
  return {};
}

/// Lays aside what has arrived: one expert, or all.
result<void> migration::state::take(bool all) {
  while (next_in < incoming.size()) {
    expert_move const& m = incoming[next_in];
    std::uint64_t const word =
        in_window.sent(window_of(rank()), m.from_rank).load(std::memory_order_acquire);
    if (!move_window::has_reached(word, number, due[next_in])) {
      if (!all) return {};
      return fail(error_code::internal, "expert {} of layer {} has not arrived from rank {}",
                  m.expert, m.layer, m.from_rank);
    }
    FERRY_CHECK(take_one(m));
    ++next_in;
    ++counted.experts_received;
    if (!all) return {};
  }
  return {};
}

result<void> migration::state::take_one(expert_move const& m) {
  std::byte* const own = window_of(rank());
  std::span<std::byte const> const weights(in_window.expert(own, m.spare), store.expert_bytes());
  std::uint64_t const wanted = in_window.sum(own, m.spare);
  auto const differs = [&](char const* where, std::uint64_t found) {
    return fail(error_code::internal,
                "expert {} of layer {} from rank {} adds up to {:016x} {}, not to {:016x}",
                m.expert, m.layer, m.from_rank, found, where, wanted);
  };
  byte_sum arrived;
  arrived.add(weights);
  if (arrived.value() != wanted) return differs("as it arrived", arrived.value());
  FERRY_CHECK(store.stage(m.spare, local(m.layer, m.to_slot), weights));
  byte_sum staged;
  for (std::size_t at = 0; at < weights.size(); at += part.size()) {
    auto const bytes = std::span(part).first(std::min(part.size(), weights.size() - at));
    FERRY_CHECK(store.read_staged(m.spare, at, bytes));
    staged.add(bytes);
  }
  if (staged.value() != wanted) return differs("where it was laid aside", staged.value());
  return {};
}

/// All ranks have made as many calls, so all has been sent, or will never be. Either all ranks that
/// live change tables and slots, or none does.
result<bool> migration::state::end_round() {
  result<void> agreed = ranks.agree(wrong);
  if (!agreed) {
    // This rank lays nothing aside, so nobody can have come to the end of the second agreement.
    stop();
    return agreed.error();
  }
  agreed = ranks.agree(take(true));
  // A rank that ends here has told some of the others, perhaps, and some not.
  bool const decided = in_window.decide(window_of(0), number, agreed.has_value());
  if (agreed && !decided) agreed = lost_in_agreement();
  if (!decided) {
    stop();
    return agreed.error();
  }
  result<void> const changed = change();
  if (changed && agreed) return true;
  // Others go on with the new tables: this rank must not take part.
  if (!changed) ranks.mark_broken(changed.error());
  stop();
  return agreed ? changed.error() : agreed.error();
}

result<void> migration::state::change() {
  placement next = present;
  std::vector<int> const layers = rounds.front().layers;
  for (int const l : layers) {
    auto const from = target.layer(l);
    std::copy(from.begin(), from.end(), next.layer(l).begin());
  }
  // The tables first: that waits for what stands on queues, which may still read the weights.
  FERRY_CHECK(apply_placement(ep, next, options.replicas, loads ? &*loads : nullptr, layers));
  FERRY_CHECK(store.swap());
  present = std::move(next);
  ++counted.rounds;
  rounds.erase(rounds.begin());
  if (!rounds.empty()) begin_round();
  return {};
}

/// Another rank did not learn that all agreed, and decided first.
error migration::state::lost_in_agreement() {
  int lost = 0;
  while (lost < ranks.size() && ranks.look(lost) == presence::here) ++lost;
  error const why =
      lost < ranks.size()
          ? fail(error_code::unreachable,
                 "rank {} was lost before all ranks knew that round {} may change tables", lost,
                 number)
          : fail(error_code::timeout,
                 "a rank gave up before it knew that round {} may change tables", number);
  ranks.mark_broken(why);
  return why;
}

void migration::state::stop() {
  rounds.clear();
  store.discard();
}

migration::migration(std::unique_ptr<state> s) : state_(std::move(s)) {}
migration::migration(migration&&) noexcept = default;
migration& migration::operator=(migration&&) noexcept = default;
migration::~migration() = default;

result<migration> migration::make(exchange& ep, expert_store& store, placement const& present,
                                  migration_options const& options) {
  auto s = std::make_unique<state>(ep, store, present, options);
  FERRY_CHECK(s->make_windows());
  return migration(std::move(s));
}

result<void> migration::begin(placement const& target, expert_loads const* loads) {
  state& s = *state_;
  if (running())
    return fail(error_code::invalid_state, "a migration is under way: {} rounds remain",
                s.rounds.size());
  std::vector<move_round> rounds;
  placement kept;
  auto const plan = [&]() -> result<void> {
    FERRY_CHECK(check_fits(s.ep, target));
    if (target.num_nodes != s.present.num_nodes)
      return fail(error_code::invalid_argument, "a target of {} nodes, where there are {}",
                  target.num_nodes, s.present.num_nodes);
    if (loads) FERRY_CHECK(validate(*loads));
    if (loads &&
        (loads->num_layers != target.num_layers || loads->num_experts != target.num_experts))
      return fail(error_code::invalid_argument, "loads of {} layers and {} experts for {} and {}",
                  loads->num_layers, loads->num_experts, target.num_layers, target.num_experts);
    kept = keep_slots(s.present, target);
    FERRY_TRY(rounds, plan_moves(s.present, kept, s.store.spare_slots()));
    return {};
  };
  FERRY_CHECK(s.ranks.agree(plan()));
  byte_sum sum;
  sum.add(std::as_bytes(std::span(kept.experts)));
  if (loads) sum.add(std::as_bytes(std::span(loads->values)));
  std::uint64_t const mine = sum.value();
  FERRY_TRY(auto const all, s.ranks.all_gather(std::as_bytes(std::span(&mine, 1))));
  for (int r = 0; r < s.ranks.size(); ++r) {
    bytes const& theirs = all[static_cast<std::size_t>(r)];
    if (theirs.size() != sizeof mine || std::memcmp(theirs.data(), &mine, sizeof mine) != 0)
      return fail(error_code::invalid_argument,
                  "rank {} was given another target or other loads than rank {}", r, s.rank());
  }
  s.target = std::move(kept);
  s.loads = loads ? std::optional(*loads) : std::nullopt;
  s.rounds = std::move(rounds);
  if (running()) s.begin_round();
  return {};
}

result<bool> migration::advance() {
  state& s = *state_;
  if (!running()) return false;
  FERRY_CHECK(s.ranks.usable());
  if (s.steps_left == 0) return s.end_round();
  --s.steps_left;
  if (s.wrong) s.wrong = s.send_part();
  if (s.wrong) s.wrong = s.take(false);
  return false;
}

bool migration::running() const {
  return !state_->rounds.empty();
}
placement const& migration::present() const {
  return state_->present;
}
migration_counters const& migration::counters() const {
  return state_->counted;
}

}  // namespace ferry
