// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "group/link.hpp"

#include "base/fail.hpp"
#include "group/packed.hpp"
#include "group/socket.hpp"

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

namespace ferry {
namespace {

struct frame_head {
  std::array<char, 4> magic = {'f', 'r', 'y', '1'};
  std::uint32_t kind = 0;
  std::uint64_t number = 0;
  std::uint64_t bytes = 0;
};

/// Whether `got`, however short, may be the beginning of a frame.
bool begins_a_frame(std::span<std::byte const> got) {
  frame_head const expected;
  auto const magic = std::as_bytes(std::span(expected.magic));
  auto const count = std::min(got.size(), magic.size());
  return std::ranges::equal(got.first(count), magic.first(count));
}

std::string text_of(int errno_value) {
  return std::generic_category().message(errno_value);
}

}  // namespace

link::link(descriptor socket, std::size_t limit) : socket_(std::move(socket)), limit_(limit) {}

void link::trust() {
  std::lock_guard const lock(guard_);
  local_ = ends_here(socket());  // now, because nobody can say it after a reset
  limit_ = max_frame_bytes;
}

void link::end(presence how, std::string why, bool for_certain) {
  if (peer_ != presence::here) return;
  why_ = std::move(why);
  ended_ = for_certain;
  outgoing_.clear();
  peer_ = how;
}

error link::farewell(int rank) const {
  std::lock_guard const lock(guard_);
  if (reason_) return fail(reason_->code, "rank {} has left the group: {}", rank, reason_->message);
  if (peer_ == presence::left)
    return fail(error_code::unreachable, "rank {} has left the group", rank);
  return fail(error_code::unreachable, "rank {} is gone: {}", rank, why_);
}

error link::refusal(int rank) const {
  std::lock_guard const lock(guard_);
  if (reason_) return fail(reason_->code, "turned away by rank {}: {}", rank, reason_->message);
  return fail(error_code::unreachable, "rank {} has hung up", rank);
}

bool link::explained() const {
  std::lock_guard const lock(guard_);
  return reason_.has_value();
}

bool link::breached() const {
  std::lock_guard const lock(guard_);
  return breached_;
}

bool link::has_ended() const {
  std::lock_guard const lock(guard_);
  return ended_;
}

void link::distrust(std::string why) {
  std::lock_guard const lock(guard_);
  breach(std::move(why));
}

void link::breach(std::string why) {
  if (peer_ == presence::here) breached_ = true;
  end(presence::gone, std::move(why), false);
}

void link::read() {
  std::lock_guard const lock(guard_);
  std::array<std::byte, 65536> piece;
  parse();  // what a stranger said behind his first frame, if he is none any more
  while (takes_more()) {
    ssize_t const got = ::recv(socket(), piece.data(), piece.size(), MSG_DONTWAIT);
    if (got > 0) {
      unread_.insert(unread_.end(), piece.data(), piece.data() + got);
      parse();
    } else if (got == 0) {
      end(presence::gone, "its connection ended without a goodbye", local_ || !reset_);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return;
    } else if (errno != EINTR) {
      // A process that ends with bytes unread resets its connections.
      end(presence::gone, "its connection broke: " + text_of(errno), errno == ECONNRESET && local_);
    }
  }
}

// A stranger is heard out for one frame at a time; whoever is known may send as much as he likes.
bool link::takes_more() const {
  return peer_ == presence::here && (frames_.empty() || limit_ > max_stranger_bytes);
}

void link::parse() {
  while (takes_more()) {
    auto const rest = std::span<std::byte const>(unread_).subspan(parsed_);
    if (!begins_a_frame(rest)) return breach("it does not speak ferry's protocol");
    if (rest.size() < sizeof(frame_head)) break;
    auto const head = unpacker{rest}.take<frame_head>();
    if (head.bytes > limit_)
      return breach(
          fmt::format("it sends a frame of {} bytes, more than {}", head.bytes, limit_.load()));
    if (rest.size() - sizeof head < head.bytes) {
      // One growth in place of many: rows of a large table come in pieces.
      unread_.reserve(parsed_ + sizeof head + head.bytes);
      break;
    }
    auto const payload = rest.subspan(sizeof head, head.bytes);
    parsed_ += sizeof head + payload.size();
    if (static_cast<frame_kind>(head.kind) == frame_kind::goodbye) {
      if (auto const why = unpacker{payload}.take_outcome(); !why) reason_ = why.error();
      return end(presence::left, "it said goodbye", true);
    }
    frames_.push_back(
        {static_cast<frame_kind>(head.kind), head.number, bytes(payload.begin(), payload.end())});
  }
  unread_.erase(unread_.begin(), unread_.begin() + static_cast<std::ptrdiff_t>(parsed_));
  parsed_ = 0;
}

std::optional<frame> link::next() {
  std::lock_guard const lock(guard_);
  if (frames_.empty()) parse();
  if (frames_.empty()) return std::nullopt;
  auto first = std::move(frames_.front());
  frames_.pop_front();
  return first;
}

void link::queue(frame_kind kind, std::uint64_t number, std::shared_ptr<bytes const> payload) {
  std::lock_guard const lock(guard_);
  if (peer_ != presence::here || closed_) return;
  frame_head head;
  head.kind = static_cast<std::uint32_t>(kind);
  head.number = number;
  head.bytes = payload->size();
  outgoing_.push_back({packer{}.add(head).packed(), std::move(payload)});
}

void link::queue(frame_kind kind, bytes payload) {
  queue(kind, 0, std::make_shared<bytes const>(std::move(payload)));
}

bool link::wants_to_write() const {
  std::lock_guard const lock(guard_);
  return !outgoing_.empty();
}

void link::write() {
  std::lock_guard const lock(guard_);
  write_locked();
}

void link::write_locked() {
  while (!outgoing_.empty()) {
    auto& first = outgoing_.front();
    auto const head_sent = std::min(first.sent, first.head.size());
    auto const payload_sent = first.sent - head_sent;
    std::array<iovec, 2> pieces{{{first.head.data() + head_sent, first.head.size() - head_sent},
                                 {const_cast<std::byte*>(first.payload->data()) + payload_sent,
                                  first.payload->size() - payload_sent}}};
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = pieces.size();
    ssize_t const sent = ::sendmsg(socket(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0) {
      first.sent += static_cast<std::size_t>(sent);
      if (first.sent == first.head.size() + first.payload->size()) outgoing_.pop_front();
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return;
    } else if (errno != EINTR) {
      // What the peer said before it went may still wait to be read: reading finds the end.
      outgoing_.clear();
      if (errno == ECONNRESET) reset_ = true;
      if (errno != EPIPE && errno != ECONNRESET)
        end(presence::gone, "its connection broke: " + text_of(errno), false);
      return;
    }
  }
}

void link::leave(result<void> const& why) {
  bool const clogged = wants_to_write();
  if (!clogged) queue(frame_kind::goodbye, packer{}.add_outcome(why).packed());
  std::lock_guard const lock(guard_);
  if (std::exchange(closed_, true)) return;
  write_locked();
  ::shutdown(socket(), SHUT_WR);
}

presence link::look() {
  if (peer_ != presence::here) return peer_;
  pollfd ended{socket(), POLLRDHUP, 0};
  if (::poll(&ended, 1, 0) > 0 && ended.revents != 0) read();
  end_if_silent();
  return peer_;
}

void link::end_if_silent() {
  if (peer_ != presence::here || !is_silent(socket())) return;
  std::lock_guard const lock(guard_);
  end(presence::gone, "its machine does not acknowledge what was sent", false);
}

result<bool> move_frames(std::span<link* const> links, int listener, deadline end) {
  std::vector<pollfd> sockets;
  sockets.reserve(links.size() + 1);
  sockets.push_back({listener, POLLIN, 0});
  for (auto const* l : links) {
    auto const writing = static_cast<short>(l->wants_to_write() ? POLLOUT : 0);
    sockets.push_back({l->peer() == presence::here ? l->socket() : -1,
                       static_cast<short>(POLLIN | POLLRDHUP | writing), 0});
  }
  FERRY_CHECK(wait_for(sockets, end));
  if (std::ranges::all_of(sockets, [](pollfd const& s) { return s.revents == 0; }))
    for (link* const l : links) l->end_if_silent();
  for (std::size_t i = 0; i < links.size(); ++i) {
    auto const happened = sockets[i + 1].revents;
    if (happened & POLLOUT) links[i]->write();
    if (happened & (POLLIN | POLLRDHUP | POLLHUP | POLLERR)) links[i]->read();
  }
  return sockets[0].revents != 0;
}

}  // namespace ferry
