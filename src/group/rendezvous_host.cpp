// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "group/rendezvous_host.hpp"

#include "base/fail.hpp"
#include "group/rank_names.hpp"
#include "group/shared_secret.hpp"

namespace ferry {
namespace {

/// Who connects and says nothing is no rank.
constexpr std::chrono::milliseconds visit{10000};
/// Strangers that may wait beside the ranks.
constexpr std::size_t most_strangers = 256;

}  // namespace

rendezvous_host::rendezvous_host(rendezvous place, std::chrono::milliseconds timeout)
    : place_(std::move(place)),
      timeout_(timeout),
      end_(after(timeout)),
      admitted_(static_cast<std::size_t>(place_.size)),
      addresses_(static_cast<std::size_t>(place_.size)) {}

result<links> rendezvous_host::run() {
  auto outcome = gather();
  if (outcome) outcome = send_table();
  if (outcome) return std::move(admitted_);
  // The others learn why at once, and not by waiting in vain for as long again.
  for (auto const& line : admitted_)
    if (line) line->leave(outcome);
  return std::move(outcome).error();
}

result<void> rendezvous_host::gather() {
  if (!place_.listener) {
    FERRY_TRY(place_.listener, open_rendezvous(place_.where, end_));
  }
  while (num_admitted_ < place_.size) {
    if (passed(end_)) return missing();
    std::vector<link*> lines;
    for (auto const& line : admitted_)
      if (line) lines.push_back(line.get());
    for (auto const& v : visitors_) lines.push_back(v.line.get());
    auto const soon = visitors_.empty() ? end_ : std::min(end_, visitors_.front().end);
    FERRY_TRY(bool const somebody, move_frames(lines, place_.listener.number(), soon));
    if (somebody) FERRY_CHECK(let_in());
    listen_to_visitors();
    FERRY_CHECK(look_after_admitted());
  }
  return {};
}

result<void> rendezvous_host::let_in() {
  visitor v{nullptr, {}, after(visit)};
  FERRY_TRY(auto socket, accept_one(place_.listener.number(), v.from));
  if (!socket) return {};
  v.line = std::make_unique<link>(std::move(socket), max_stranger_bytes);
  visitors_.push_back(std::move(v));
  if (visitors_.size() > admitted_.size() + most_strangers) visitors_.pop_front();
  return {};
}

void rendezvous_host::listen_to_visitors() {
  for (auto v = visitors_.begin(); v != visitors_.end();)
    v = listen_to(*v) || passed(v->end) ? visitors_.erase(v) : std::next(v);
}

bool rendezvous_host::listen_to(visitor& who) {
  return who.asked ? hear_proof(who) : hear_hello(who);
}

void rendezvous_host::turn_away(visitor& who, result<void> const& why) {
  last_refusal_ = why.error().message;
  who.line->leave(why);
}

bool rendezvous_host::hear_hello(visitor& who) {
  auto const said = first_of<hello>(*who.line, frame_kind::hello);
  if (!said.message) return said.wrong;
  auto outcome = judge(*said.message);
  if (outcome && !place_.shared_secret.empty()) {
    auto nonce = fresh_secret();
    if (nonce) {
      who.asked = said.message;
      who.question = {*nonce};
      who.line->queue(frame_kind::challenge, packer{}.add(who.question).packed());
      who.line->write();
      return false;
    }
    outcome = nonce.error();
  }
  if (outcome)
    admit(who, *said.message);
  else
    turn_away(who, outcome);
  return true;
}

bool rendezvous_host::hear_proof(visitor& who) {
  auto const said = first_of<digest>(*who.line, frame_kind::proof);
  if (!said.message) return said.wrong;
  // Another may have come with the same number meanwhile.
  auto outcome = judge(*who.asked);
  if (outcome &&
      !equal(*said.message, proof_of_rank(place_.shared_secret, *who.asked, who.question)))
    outcome = fail(error_code::invalid_argument, "rank {} at {} does not know the shared secret",
                   who.asked->rank, to_string(who.from));
  if (outcome)
    admit(who, *who.asked);
  else
    turn_away(who, outcome);
  return true;
}

result<void> rendezvous_host::judge(hello const& said) const {
  if (said.version != rendezvous_version)
    return fail(error_code::invalid_argument,
                "rank {} speaks version {} of the rendezvous, rank 0 version {}", said.rank,
                said.version, rendezvous_version);
  if (!equal(said.job, place_.job))
    return fail(error_code::invalid_argument, "rank {} belongs to another job than rank 0 at {}",
                said.rank, to_string(place_.where));
  bool const asks = !place_.shared_secret.empty();
  if (asks && said.proves == 0)
    return fail(error_code::invalid_argument,
                "rank {} has no shared secret, and rank 0 at {} asks for one", said.rank,
                to_string(place_.where));
  if (!asks && said.proves != 0)
    return fail(error_code::invalid_argument,
                "rank {} has a shared secret, and rank 0 at {} has none", said.rank,
                to_string(place_.where));
  if (said.size != place_.size)
    return fail(error_code::invalid_argument, "rank {} expects {} ranks, rank 0 {}", said.rank,
                said.size, place_.size);
  if (said.rank < 1 || said.rank >= place_.size)
    return fail(error_code::invalid_argument, "rank {} in a group of {} ranks that has its rank 0",
                said.rank, place_.size);
  if (admitted_[static_cast<std::size_t>(said.rank)])
    return fail(error_code::invalid_argument, "rank {} has joined already, from {}", said.rank,
                to_string(addresses_[static_cast<std::size_t>(said.rank)]));
  return {};
}

void rendezvous_host::admit(visitor& who, hello const& said) {
  auto const rank = static_cast<std::size_t>(said.rank);
  who.line->trust();
  bytes answer;
  if (who.asked) {
    digest const proof = proof_of_host(place_.shared_secret, said, who.question);
    answer.assign(proof.begin(), proof.end());
  }
  who.line->queue(frame_kind::welcome, std::move(answer));
  who.line->write();
  addresses_[rank] = who.from;
  addresses_[rank].set_port(static_cast<std::uint16_t>(said.port));
  admitted_[rank] = std::move(who.line);
  ++num_admitted_;
  // A rank that gives up ends the meeting for all; only rank 0 knows, and tells, who is missing.
  auto const patience = std::chrono::milliseconds(std::max<std::int64_t>(said.patience_ms, 0));
  if (patience < timeout_) end_ = std::min(end_, after(patience));
}

result<void> rendezvous_host::look_after_admitted() const {
  for (std::size_t rank = 1; rank < admitted_.size(); ++rank)
    if (admitted_[rank] && admitted_[rank]->peer() != presence::here)
      return admitted_[rank]->farewell(static_cast<int>(rank));
  return {};
}

error rendezvous_host::missing() const {
  std::vector<int> absent;
  for (std::size_t rank = 1; rank < admitted_.size(); ++rank)
    if (!admitted_[rank]) absent.push_back(static_cast<int>(rank));
  return fail(error_code::timeout, "{} did not come to {} within {} ms{}{}", names_of(absent),
              to_string(place_.where), timeout_.count(),
              last_refusal_.empty() ? "" : "; turned away: ", last_refusal_);
}

result<void> rendezvous_host::send_table() {
  FERRY_TRY(auto const session, fresh_secret());
  auto const packed = std::make_shared<bytes const>(address_table{session, addresses_}.packed());
  std::vector<link*> lines;
  for (auto const& line : admitted_) {
    if (!line) continue;
    line->queue(frame_kind::table, 0, packed);
    line->write();
    lines.push_back(line.get());
  }
  for (;;) {
    std::erase_if(lines, [](link const* l) { return !l->wants_to_write(); });
    FERRY_CHECK(look_after_admitted());
    if (lines.empty()) return {};
    if (passed(end_))
      return fail(error_code::timeout, "not all ranks took the table of addresses within {} ms",
                  timeout_.count());
    FERRY_TRY(bool const nobody, move_frames(lines, -1, end_));
    static_cast<void>(nobody);
  }
}

}  // namespace ferry
