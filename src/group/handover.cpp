// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "group/handover.hpp"

#include "base/fail.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>

namespace ferry {
namespace {

struct abstract_name {
  sockaddr_un address{};
  socklen_t length = 0;
};

abstract_name abstract(secret const& name) {
  auto const text = "ferry-" + to_hex(name);
  abstract_name made;
  made.address.sun_family = AF_UNIX;
  // A leading zero keeps the name out of the file system.
  std::memcpy(made.address.sun_path + 1, text.data(), text.size());
  made.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  return made;
}

sockaddr const* plain(abstract_name const& name) {
  return reinterpret_cast<sockaddr const*>(&name.address);
}

result<descriptor> new_socket() {
  descriptor made{::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  if (!made) return fail_errno(error_code::io, "cannot make a socket", errno);
  return made;
}

/// All descriptors of a message; those that are not returned are closed.
descriptor first_descriptor(msghdr& message) {
  descriptor first;
  for (auto* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    auto const count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(c) + i * sizeof number, sizeof number);
      descriptor received{number};
      if (!first) first = std::move(received);
    }
  }
  return first;
}

}  // namespace

result<descriptor> listen_for_handover(secret const& name) {
  FERRY_TRY(auto made, new_socket());
  auto const at = abstract(name);
  if (::bind(made.number(), plain(at), at.length) != 0 || ::listen(made.number(), SOMAXCONN) != 0)
    return fail_errno(error_code::io, "cannot listen at an abstract socket", errno);
  return made;
}

result<std::optional<descriptor>> connect_for_handover(secret const& name) {
  FERRY_TRY(auto made, new_socket());
  auto const at = abstract(name);
  int outcome = 0;
  do outcome = ::connect(made.number(), plain(at), at.length);
  while (outcome != 0 && errno == EINTR);
  if (outcome == 0) return std::optional{std::move(made)};
  if (errno == EAGAIN) return std::optional<descriptor>{};
  return fail_errno(error_code::unreachable, "cannot connect to its socket", errno);
}

result<uid_t> user_at(int socket) {
  ucred who{};
  socklen_t length = sizeof who;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &length) != 0)
    return fail_errno(error_code::io, "cannot ask for the user at a socket's other end", errno);
  return who.uid;
}

bool may_share(uid_t mine, uid_t theirs) {
  return mine == theirs || mine == 0 || theirs == 0;
}

result<void> hand_over(int socket, handover_note const& note, int file) {
  iovec piece{const_cast<handover_note*>(&note), sizeof note};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  if (file >= 0) {
    message.msg_control = room;
    message.msg_controllen = sizeof room;
    auto* const c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof file);
    std::memcpy(CMSG_DATA(c), &file, sizeof file);
  }
  ssize_t sent = 0;
  do sent = ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  if (sent < 0) return fail_errno(error_code::io, "cannot hand over a window", errno);
  return {};
}

result<std::optional<handed_over>> take_over(int socket) {
  handed_over got;
  // Room for more than one note and one descriptor, to tell a stranger's packet from a rank's.
  alignas(handover_note) std::byte packet[2 * sizeof(handover_note)];
  iovec piece{packet, sizeof packet};
  alignas(cmsghdr) char room[CMSG_SPACE(4 * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = room;
  message.msg_controllen = sizeof room;
  ssize_t count = 0;
  do count = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  while (count < 0 && errno == EINTR);
  if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return std::optional<handed_over>{};
  if (count < 0 && errno != ECONNRESET)
    return fail_errno(error_code::io, "cannot receive a window", errno);
  if (count <= 0) return fail(error_code::unreachable, "it closed the connection");
  got.file = first_descriptor(message);
  if (count != static_cast<ssize_t>(sizeof got.note))
    return fail(error_code::malformed_input, "a packet of {} bytes, not of {}", count,
                sizeof got.note);
  std::memcpy(&got.note, packet, sizeof got.note);
  if (got.note.magic != handover_note{}.magic)
    return fail(error_code::malformed_input, "a packet that is none of ferry's");
  if ((message.msg_flags & MSG_CTRUNC) && !got.file)
    return fail(error_code::io, "no room for a descriptor: this process has too many files open");
  return std::optional{std::move(got)};
}

}  // namespace ferry
