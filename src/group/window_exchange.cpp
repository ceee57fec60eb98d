// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "group/window_exchange.hpp"

#include "base/fail.hpp"
#include "group/agreement.hpp"
#include "group/deadline.hpp"
#include "group/handover.hpp"
#include "group/machine.hpp"
#include "group/packed.hpp"
#include "group/rank_names.hpp"
#include "group/socket.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <list>
#include <optional>
#include <thread>

namespace ferry {
namespace {

/// How often the peers' lives are looked at while their windows are awaited.
constexpr std::chrono::milliseconds look_interval{20};
/// A full listener cannot be polled for room.
constexpr std::chrono::milliseconds retry_interval{2};
/// A dying process closes its sockets one after the other.
constexpr std::chrono::milliseconds time_to_die{1000};
constexpr std::size_t most_strangers = 64;
constexpr std::chrono::milliseconds visit{5000};

constexpr char users_differ[] =
    "rank {} runs as user {}, rank {} as user {}: windows are shared within one user";

/// What a rank tells all others before the windows change hands.
struct card {
  machine_id machine{};
  std::uint64_t network_namespace = 0;
  std::uint64_t bytes = 0;
  std::uint64_t device = 0;  ///< device and inode of the memfd: no other file has both
  std::uint64_t inode = 0;
  secret name{};
  secret key{};
};

/// Three steps, each of which all ranks finish, so that no rank waits for one that gave up:
/// 1. everybody listens, and shows where;
/// 2. every rank connects to the lower ones, and tells which it does not reach;
/// 3. windows cross on the connections that stand, each with a refusal in its place if need be.
class window_exchange {
 public:
  window_exchange(bootstrap& ranks, std::chrono::milliseconds timeout,
                  std::vector<bool> const& same_node)
      : ranks_(ranks),
        timeout_(timeout),
        end_(after(timeout)),
        me_(ranks.rank()),
        same_node_(same_node) {}

  result<shared_windows> run(std::size_t size);

 private:
  struct peer {
    card said;
    descriptor line;       ///< lower ranks: the connection this rank made
    bool awaited = false;  ///< its window is still to come
    deadline lost{};       ///< the connection ended without an answer: dead, or a refusal by then
  };
  struct visitor {
    descriptor line;
    deadline end;
  };

  result<card> prepare(std::size_t size);
  result<void> show_cards(result<card> const& mine);
  void decide_reach();
  void reach_by_network(int rank, std::string why);

  result<void> connect_lower_ranks();
  result<void> connect_to(int rank);
  result<void> tell_who_is_out_of_reach(result<void> const& outcome);

  result<void> exchange_all();
  result<void> let_in();
  void listen_to_visitors();
  bool listen_to(visitor& who);
  void listen_to_lower_ranks();
  void answer(int rank, int line, bool refused);
  result<void> take(int rank, int line, handed_over const& got);
  result<void> wait();
  void forget_the_dead();
  void stop_listening(error why);
  bool complete() const;
  error late() const;
  void note_trouble(error what) {
    if (!trouble_) trouble_ = std::move(what);
  }
  peer& at(int rank) { return peers_[static_cast<std::size_t>(rank)]; }

  bootstrap& ranks_;
  std::chrono::milliseconds const timeout_;
  deadline const end_;
  int const me_;
  std::vector<bool> const& same_node_;
  descriptor listener_;
  std::vector<peer> peers_;
  std::list<visitor> visitors_;
  std::optional<error> trouble_;
  shared_windows shared_;
};

result<shared_windows> window_exchange::run(std::size_t size) {
  auto const num_ranks = static_cast<std::size_t>(ranks_.size());
  peers_.resize(num_ranks);
  shared_.windows.resize(num_ranks);
  shared_.how.resize(num_ranks, reach::mapped);
  shared_.why.resize(num_ranks);
  shared_.bytes.resize(num_ranks);
  FERRY_CHECK(show_cards(prepare(size)));
  decide_reach();
  FERRY_CHECK(tell_who_is_out_of_reach(connect_lower_ranks()));
  FERRY_CHECK(exchange_all());
  // When a peer is gone this fails too, with the root cause: it might have left because of another.
  FERRY_CHECK(agree(ranks_, trouble_ ? result<void>{*trouble_} : result<void>{}, timeout_));
  return std::move(shared_);
}

result<card> window_exchange::prepare(std::size_t size) {
  card mine;
  FERRY_TRY(mine.machine, this_machine());
  FERRY_TRY(mine.name, fresh_secret());
  FERRY_TRY(mine.key, fresh_secret());
  FERRY_TRY(listener_, listen_for_handover(mine.name));
  mine.network_namespace = network_namespace();
  mine.bytes = size;
  if (size == 0) return mine;
  FERRY_TRY(auto made, window::shareable(size));
  struct stat about {};
  if (::fstat(made.descriptor(), &about) != 0)
    return fail_errno(error_code::io, "cannot ask about a window's descriptor", errno);
  mine.device = about.st_dev;
  mine.inode = about.st_ino;
  shared_.windows[static_cast<std::size_t>(me_)] = std::move(made);
  return mine;
}

result<void> window_exchange::show_cards(result<card> const& mine) {
  packer to;
  to.add_outcome(mine ? result<void>{} : result<void>{mine.error()}).add(mine ? *mine : card{});
  FERRY_TRY(auto const all, ranks_.all_gather(to.packed(), timeout_));
  if (!mine) return mine.error();
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    unpacker from{all[static_cast<std::size_t>(rank)]};
    if (auto const outcome = from.take_outcome(); !outcome) return told_by(rank, outcome.error());
    at(rank).said = from.take<card>();
    if (!from.complete())
      return fail(error_code::malformed_input, "rank {} described its window with {} bytes", rank,
                  all[static_cast<std::size_t>(rank)].size());
    shared_.bytes[static_cast<std::size_t>(rank)] = at(rank).said.bytes;
  }
  return {};
}

void window_exchange::reach_by_network(int rank, std::string why) {
  at(rank).awaited = false;
  at(rank).line.close();
  shared_.how[static_cast<std::size_t>(rank)] = reach::network;
  shared_.why[static_cast<std::size_t>(rank)] = std::move(why);
}

void window_exchange::decide_reach() {
  auto const& mine = at(me_).said;
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    auto const& theirs = at(rank).said;
    at(rank).awaited = rank != me_;
    if (rank == me_)
      shared_.how[static_cast<std::size_t>(rank)] = reach::self;
    else if (theirs.machine != mine.machine)
      reach_by_network(rank,
                       fmt::format("rank {} runs on another machine (its boot id differs)", rank));
    else if (theirs.network_namespace != mine.network_namespace)
      reach_by_network(rank, fmt::format("rank {} runs on this machine in another network "
                                         "namespace, which the sockets that carry windows do not "
                                         "cross",
                                         rank));
    else if (!same_node_[static_cast<std::size_t>(rank)])
      reach_by_network(rank,
                       fmt::format("rank {} counts as one of another node (ranks_per_node)", rank));
  }
}

result<void> window_exchange::connect_lower_ranks() {
  for (int rank = 0; rank < me_; ++rank)
    if (at(rank).awaited) FERRY_CHECK(connect_to(rank));
  return {};
}

result<void> window_exchange::connect_to(int rank) {
  auto& p = at(rank);
  for (;;) {
    auto line = connect_for_handover(p.said.name);
    if (!line && line.error().code != error_code::unreachable) return line.error();
    if (!line) {
      reach_by_network(
          rank, fmt::format("rank {} on rank {}'s machine: {}", me_, rank, line.error().message));
      return {};
    }
    if (*line) {
      p.line = **std::move(line);
      break;
    }
    if (passed(end_)) return late();
    std::this_thread::sleep_for(retry_interval);
  }
  FERRY_TRY(auto const user, user_at(p.line.number()));
  if (may_share(::geteuid(), user)) return {};
  return fail(error_code::unsupported, users_differ, rank, user, me_, ::geteuid());
}

result<void> window_exchange::tell_who_is_out_of_reach(result<void> const& outcome) {
  packer to;
  to.add_outcome(outcome);
  for (int rank = 0; rank < me_; ++rank)
    to.add_text(outcome && !at(rank).line ? shared_.why[static_cast<std::size_t>(rank)] : "");
  FERRY_TRY(auto const all, ranks_.all_gather(to.packed(), timeout_));
  if (!outcome) return outcome.error();
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    unpacker from{all[static_cast<std::size_t>(rank)]};
    if (auto const theirs = from.take_outcome(); !theirs) return told_by(rank, theirs.error());
    for (int lower = 0; lower < rank; ++lower) {
      auto why = from.take_text();
      if (lower == me_ && !why.empty() && at(rank).awaited) reach_by_network(rank, std::move(why));
    }
    if (!from.complete())
      return fail(error_code::malformed_input, "rank {} told whom it reaches in {} bytes", rank,
                  all[static_cast<std::size_t>(rank)].size());
  }
  return {};
}

bool window_exchange::complete() const {
  for (auto const& p : peers_)
    if (p.awaited) return false;
  return true;
}

result<void> window_exchange::exchange_all() {
  for (int rank = 0; rank < me_; ++rank)
    if (at(rank).line) answer(rank, at(rank).line.number(), false);
  while (!complete()) {
    FERRY_CHECK(wait());
    if (auto const outcome = let_in(); !outcome) stop_listening(outcome.error());
    listen_to_visitors();
    listen_to_lower_ranks();
    forget_the_dead();
    if (!complete() && passed(end_)) return late();
  }
  return {};
}

error window_exchange::late() const {
  std::vector<int> absent;
  for (std::size_t rank = 0; rank < peers_.size(); ++rank)
    if (peers_[rank].awaited) absent.push_back(static_cast<int>(rank));
  return fail(error_code::timeout, "the windows of {} did not come within {} ms", names_of(absent),
              timeout_.count());
}

/// Goes on without them: the others may still wait for this rank's window.
void window_exchange::forget_the_dead() {
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    auto& p = at(rank);
    if (!p.awaited) continue;
    auto const seen = ranks_.look(rank);
    bool const silent = p.lost != deadline{} && passed(p.lost);
    if (seen == presence::here && !silent) continue;
    if (seen == presence::here)
      note_trouble(fail(error_code::unsupported,
                        "rank {} ended the connection on which its window should have come", rank));
    else
      note_trouble(fail(error_code::unreachable, "rank {} {} before its window came", rank,
                        seen == presence::left ? "has left the group" : "is gone"));
    p.awaited = false;
    p.line.close();
  }
}

/// This process cannot accept: the ranks that would connect see that, and all of them fail.
void window_exchange::stop_listening(error why) {
  note_trouble(std::move(why));
  listener_.close();
  for (int rank = me_ + 1; rank < ranks_.size(); ++rank) at(rank).awaited = false;
}

result<void> window_exchange::wait() {
  std::vector<pollfd> sockets{{listener_.number(), POLLIN, 0}};
  for (auto const& p : peers_)
    if (p.awaited && p.line) sockets.push_back({p.line.number(), POLLIN, 0});
  for (auto const& v : visitors_) sockets.push_back({v.line.number(), POLLIN, 0});
  return wait_for(sockets, std::min(end_, after(look_interval)));
}

result<void> window_exchange::let_in() {
  while (listener_) {
    socket_address from;
    FERRY_TRY(auto line, accept_one(listener_.number(), from));
    if (!line) return {};
    visitors_.push_back({std::move(line), after(visit)});
    if (visitors_.size() > peers_.size() + most_strangers) visitors_.pop_front();
  }
  return {};
}

void window_exchange::listen_to_visitors() {
  for (auto v = visitors_.begin(); v != visitors_.end();)
    v = listen_to(*v) || passed(v->end) ? visitors_.erase(v) : std::next(v);
}

/// Returns  whether this visit is over. Strangers learn nothing, and are no trouble
bool window_exchange::listen_to(visitor& who) {
  auto const got = take_over(who.line.number());
  if (!got) return true;
  if (!*got) return false;
  auto const& note = (*got)->note;
  if (note.key != at(me_).said.key || note.to != me_ || note.from <= me_ ||
      note.from >= ranks_.size() || !at(note.from).awaited)
    return true;
  auto const outcome = take(note.from, who.line.number(), **got);
  if (!outcome) note_trouble(outcome.error());
  answer(note.from, who.line.number(), !outcome);
  at(note.from).awaited = false;
  return true;
}

void window_exchange::listen_to_lower_ranks() {
  for (int rank = 0; rank < me_; ++rank) {
    auto& p = at(rank);
    if (!p.awaited || !p.line) continue;
    auto const got = take_over(p.line.number());
    if (got && !*got) continue;
    if (!got && got.error().code == error_code::unreachable) {
      p.line.close();
      p.lost = after(time_to_die);
      continue;
    }
    auto const outcome = got ? take(rank, p.line.number(), **got) : result<void>{got.error()};
    if (!outcome) note_trouble(outcome.error());
    p.awaited = false;
    p.line.close();
  }
}

/// Hands this rank's window to `rank`, or the refusal.
void window_exchange::answer(int rank, int line, bool refused) {
  handover_note note{.from = me_, .to = rank, .refused = refused, .key = at(rank).said.key};
  int const file = shared_.windows[static_cast<std::size_t>(me_)].descriptor();
  auto const outcome = hand_over(line, note, refused ? -1 : file);
  if (outcome || refused) return;
  note_trouble(outcome.error());
  note.refused = 1;
  // If this fails too, the peer is gone, or sees the connection end.
  static_cast<void>(hand_over(line, note, -1));
}

result<void> window_exchange::take(int rank, int line, handed_over const& got) {
  auto const& said = at(rank).said;
  auto const& note = got.note;
  if (note.key != at(me_).said.key || note.from != rank || note.to != me_)
    return fail(error_code::malformed_input, "who answers for rank {} does not know its secret",
                rank);
  if (note.refused)
    return fail(error_code::unsupported, "rank {} refuses to share windows with rank {}", rank,
                me_);
  FERRY_TRY(auto const user, user_at(line));
  if (!may_share(::geteuid(), user))
    return fail(error_code::unsupported, users_differ, rank, user, me_, ::geteuid());
  if (said.bytes == 0) return {};
  struct stat about {};
  if (!got.file || ::fstat(got.file.number(), &about) != 0 ||
      static_cast<std::uint64_t>(about.st_dev) != said.device || about.st_ino != said.inode)
    return fail(error_code::malformed_input, "what rank {} handed over is not its window", rank);
  FERRY_TRY(shared_.windows[static_cast<std::size_t>(rank)],
            window::map(got.file.number(), said.bytes));
  return {};
}

}  // namespace

result<shared_windows> share_between_processes(bootstrap& ranks, std::size_t size,
                                               std::chrono::milliseconds timeout,
                                               std::vector<bool> const& same_node) {
  return window_exchange(ranks, timeout, same_node).run(size);
}

}  // namespace ferry
