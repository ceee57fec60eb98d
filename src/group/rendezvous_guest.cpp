// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "group/rendezvous_guest.hpp"

#include "base/fail.hpp"
#include "group/rank_names.hpp"
#include "group/shared_secret.hpp"

#include <thread>

namespace ferry {
namespace {

constexpr std::chrono::milliseconds visit{10000};
constexpr std::size_t most_strangers = 256;
/// Between two attempts to find rank 0: short at first, for ranks that start together.
constexpr std::chrono::milliseconds first_pause{5};
constexpr std::chrono::milliseconds longest_pause{200};
/// One attempt to connect, where a name stands for several addresses and one of them is silent.
constexpr std::chrono::milliseconds attempt{5000};
/// Rank 0 gives up when this rank does, and is the one who knows who is missing: hear it out.
constexpr std::chrono::milliseconds last_word{250};
/// How long rank 0 may take to explain what happened to a third rank.
constexpr std::chrono::milliseconds time_to_explain{500};

}  // namespace

rendezvous_guest::rendezvous_guest(rendezvous place, std::chrono::milliseconds timeout)
    : place_(std::move(place)),
      timeout_(timeout),
      end_(after(timeout)),
      links_(static_cast<std::size_t>(place_.size)),
      greeted_(static_cast<std::size_t>(place_.size)) {}

result<links> rendezvous_guest::run() {
  auto outcome = say_hello();
  if (outcome) {
    if (auto table = wait_for_table())
      table_ = *std::move(table);
    else
      outcome = table.error();
  }
  if (outcome) outcome = connect_all();
  if (outcome) return std::move(links_);
  for (auto const& line : links_)
    if (line) line->leave(outcome);
  return std::move(outcome).error();
}

error rendezvous_guest::too_late(std::string const& why) const {
  return fail(error_code::timeout, "rank 0 did not come to {} within {} ms: {}",
              to_string(place_.where), timeout_.count(), why);
}

result<void> rendezvous_guest::say_hello() {
  std::string why = "nobody answers";
  auto pause = first_pause;
  for (;;) {
    auto const found = place_.find(place_.where, end_);
    if (!found) why = found.error().message;
    auto const hosts = found ? *found : std::vector<socket_address>{};
    for (std::size_t i = 0; i < hosts.size(); ++i) {
      auto const& host = hosts[i];
      // Where a name stands for several addresses, a silent one must leave time for the others.
      auto const left = static_cast<int>(hosts.size() - i);
      auto const met = try_hello(host, left == 1 ? end_ : after(until(end_) / left));
      if (met && *met) return {};
      if (!met && met.error().code != error_code::io && met.error().code != error_code::timeout)
        return met.error();
      why = met ? fmt::format("{} closes the connection without an answer", to_string(host))
                : met.error().message;
    }
    if (passed(end_)) return too_late(why);
    std::this_thread::sleep_for(std::min(pause, until(end_)));
    pause = std::min(2 * pause, longest_pause);
  }
}

result<bool> rendezvous_guest::try_hello(socket_address const& host, deadline end) {
  FERRY_TRY(auto socket, connect_to(host, std::min(end, after(attempt))));
  // The others see this rank at the address from which it reached rank 0: it listens there.
  FERRY_TRY(auto mine, local_address(socket.number()));
  mine.set_port(0);
  FERRY_TRY(place_.listener, listen_at(mine));
  FERRY_TRY(auto const listening, local_address(place_.listener.number()));

  hello said;
  said.rank = place_.rank;
  said.size = place_.size;
  said.port = listening.port();
  said.job = place_.job;
  said.patience_ms = until(end_).count();
  asked_.reset();
  if (!place_.shared_secret.empty()) {
    said.proves = 1;
    FERRY_TRY(said.nonce, fresh_secret());
  }
  // Whoever takes the connection may be anybody, until he has shown that he is rank 0.
  links_[0] = std::make_unique<link>(std::move(socket), max_stranger_bytes);
  links_[0]->queue(frame_kind::hello, packer{}.add(said).packed());
  links_[0]->write();
  return wait_for_welcome(said, end);
}

result<void> rendezvous_guest::answer(hello const& said, frame const& asked) {
  unpacker rest{asked.payload};
  auto const question = rest.take<challenge>();
  if (!rest.complete() || place_.shared_secret.empty())
    return fail(error_code::invalid_argument,
                "rank 0 at {} asks for a shared secret, and this rank has none",
                to_string(place_.where));
  asked_ = question;
  links_[0]->queue(frame_kind::proof,
                   packer{}.add(proof_of_rank(place_.shared_secret, said, question)).packed());
  links_[0]->write();
  return {};
}

result<void> rendezvous_guest::check_welcome(hello const& said, frame const& got) const {
  if (place_.shared_secret.empty()) return {};
  unpacker rest{got.payload};
  auto const proof = rest.take<digest>();
  if (asked_ && rest.complete() && equal(proof, proof_of_host(place_.shared_secret, said, *asked_)))
    return {};
  return fail(error_code::invalid_argument, "who answers at {} does not know the shared secret",
              to_string(place_.where));
}

secret rendezvous_guest::sign(int from, int to) const {
  if (place_.shared_secret.empty()) return table_.session;
  return sign_greeting(place_.shared_secret, {table_.session, from, to});
}

result<bool> rendezvous_guest::wait_for_welcome(hello const& said, deadline end) {
  link* const host = links_[0].get();
  for (;;) {
    if (auto const got = host->next()) {
      if (got->kind == frame_kind::challenge && !asked_) {
        FERRY_CHECK(answer(said, *got));
        continue;
      }
      if (got->kind == frame_kind::welcome) {
        FERRY_CHECK(check_welcome(said, *got));
        host->trust();
        return true;
      }
      return fail(error_code::malformed_input, "who answers at {} is no rank 0: a frame of kind {}",
                  to_string(place_.where), static_cast<unsigned>(got->kind));
    }
    if (host->peer() == presence::left) {
      auto refusal = host->refusal(0);
      return refusal.code == error_code::unreachable ? result<bool>{false}
                                                     : result<bool>{std::move(refusal)};
    }
    if (host->peer() == presence::gone) {
      if (!host->breached()) return false;
      return fail(error_code::malformed_input, "who answers at {} is no rank 0: {}",
                  to_string(place_.where), host->farewell(0).message);
    }
    if (passed(end)) return fail(error_code::timeout, "it takes the connection, but says nothing");
    FERRY_TRY(bool const nobody, move_frames({&host, 1}, -1, end));
    static_cast<void>(nobody);
  }
}

result<address_table> rendezvous_guest::wait_for_table() {
  link* const host = links_[0].get();
  auto const end = end_ + last_word;
  for (;;) {
    if (auto const got = host->next()) {
      if (got->kind == frame_kind::table) return address_table::from(got->payload, place_.size);
      return fail(error_code::malformed_input, "rank 0 sent a frame of kind {} in place of a table",
                  static_cast<unsigned>(got->kind));
    }
    if (host->peer() != presence::here) return host->farewell(0);
    if (passed(end))
      return fail(error_code::timeout, "rank 0 at {} did not gather all {} ranks within {} ms",
                  to_string(place_.where), place_.size, timeout_.count());
    FERRY_TRY(bool const nobody, move_frames({&host, 1}, -1, end));
    static_cast<void>(nobody);
  }
}

bool rendezvous_guest::complete() const {
  for (std::size_t peer = 1; peer < links_.size(); ++peer)
    if (static_cast<int>(peer) != place_.rank && !greeted_[peer]) return false;
  return true;
}

result<void> rendezvous_guest::connect_all() {
  FERRY_CHECK(connect_lower_ranks());
  for (;;) {
    // A greeting that still has to leave belongs to a peer that has not answered it yet.
    if (complete()) return {};
    if (passed(end_)) {
      std::vector<int> absent;
      for (int peer = 1; peer < place_.size; ++peer)
        if (peer != place_.rank && !greeted_[static_cast<std::size_t>(peer)])
          absent.push_back(peer);
      return fail(error_code::timeout, "{} did not connect within {} ms", names_of(absent),
                  timeout_.count());
    }
    std::vector<link*> lines;
    for (std::size_t peer = 0; peer < links_.size(); ++peer)
      if (links_[peer] && !greeted_[peer]) lines.push_back(links_[peer].get());
    for (auto const& v : visitors_) lines.push_back(v.line.get());
    auto const soon = visitors_.empty() ? end_ : std::min(end_, visitors_.front().end);
    FERRY_TRY(bool const somebody, move_frames(lines, place_.listener.number(), soon));
    if (somebody) FERRY_CHECK(let_in());
    listen_to_visitors();
    FERRY_CHECK(listen_to_host());
    FERRY_CHECK(listen_to_lower_ranks());
  }
}

result<void> rendezvous_guest::connect_lower_ranks() {
  for (std::int32_t peer = 1; peer < place_.rank; ++peer) {
    auto const at = static_cast<std::size_t>(peer);
    auto socket = start_connecting(table_.addresses[at]);
    if (!socket)
      return explained(
          fail(error_code::unreachable, "rank {} is gone: {}", peer, socket.error().message));
    links_[at] = std::make_unique<link>(*std::move(socket), max_stranger_bytes);
    links_[at]->queue(frame_kind::greeting,
                      packer{}.add(greeting{sign(place_.rank, peer), place_.rank, peer}).packed());
  }
  return {};
}

result<void> rendezvous_guest::let_in() {
  socket_address from;
  FERRY_TRY(auto socket, accept_one(place_.listener.number(), from));
  if (!socket) return {};
  visitors_.push_back(
      {std::make_unique<link>(std::move(socket), max_stranger_bytes), after(visit)});
  if (visitors_.size() > links_.size() + most_strangers) visitors_.pop_front();
  return {};
}

void rendezvous_guest::listen_to_visitors() {
  for (auto v = visitors_.begin(); v != visitors_.end();) {
    auto const said = first_of<greeting>(*v->line, frame_kind::greeting);
    bool const over = said.message || said.wrong || passed(v->end);
    if (auto const& g = said.message; g && g->to == place_.rank && g->from > place_.rank &&
                                      g->from < place_.size &&
                                      equal(g->session, sign(g->from, place_.rank)) &&
                                      !links_[static_cast<std::size_t>(g->from)]) {
      auto const peer = static_cast<std::size_t>(g->from);
      v->line->trust();
      v->line->queue(
          frame_kind::greeting,
          packer{}.add(greeting{sign(place_.rank, g->from), place_.rank, g->from}).packed());
      v->line->write();
      links_[peer] = std::move(v->line);
      greeted_[peer] = true;
    }
    v = over ? visitors_.erase(v) : std::next(v);
  }
}

result<void> rendezvous_guest::listen_to_host() {
  if (links_[0]->peer() != presence::here) return links_[0]->farewell(0);
  return {};
}

result<void> rendezvous_guest::listen_to_lower_ranks() {
  for (int peer = 1; peer < place_.rank; ++peer) {
    auto const at = static_cast<std::size_t>(peer);
    if (greeted_[at]) continue;
    auto const said = first_of<greeting>(*links_[at], frame_kind::greeting);
    if (said.message && equal(said.message->session, sign(peer, place_.rank)) &&
        said.message->from == peer) {
      links_[at]->trust();
      greeted_[at] = true;
    } else if (said.message || said.wrong) {
      return explained(links_[at]->peer() != presence::here
                           ? links_[at]->farewell(peer)
                           : fail(error_code::malformed_input, "who answers at {} is not rank {}",
                                  to_string(table_.addresses[at]), peer));
    }
  }
  return {};
}

error rendezvous_guest::explained(error guess) {
  link* const host = links_[0].get();
  auto const end = std::min(end_, after(time_to_explain));
  while (host->peer() == presence::here && !passed(end))
    if (!move_frames({&host, 1}, -1, end)) break;
  return host->peer() == presence::here ? guess : host->farewell(0);
}

}  // namespace ferry
