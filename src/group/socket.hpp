// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// TCP sockets that never block, are closed on exec, and whose every wait has a deadline.
#pragma once

#include <ferry/base/result.hpp>

#include "group/deadline.hpp"
#include "memory/descriptor.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ferry {

/// Where somebody listens, as people write it.
struct endpoint {
  std::string host;
  std::uint16_t port = 0;
};

/// "host:port", "1.2.3.4:port", "[::1]:port".
/// Errors  invalid_argument
result<endpoint> parse_endpoint(std::string_view text);
/// 1..65535.
result<std::uint16_t> parse_port(std::string_view text);
std::string to_string(endpoint const& where);

/// Where somebody listens, as the kernel takes it.
struct socket_address {
  sockaddr_storage storage{};
  socklen_t length = 0;

  sockaddr const* at() const { return reinterpret_cast<sockaddr const*>(&storage); }
  sockaddr* at() { return reinterpret_cast<sockaddr*>(&storage); }
  std::uint16_t port() const;
  void set_port(std::uint16_t port);
};

/// The addresses of a host name, in the system's order. A number is turned into an address at once;
/// a name is looked up aside, since no resolver keeps a deadline.
/// Errors  io the name is unknown; timeout
result<std::vector<socket_address>> resolve(endpoint const& where, deadline end);

/// Errors  io with the address
result<descriptor> listen_at(socket_address const& where);
result<socket_address> local_address(int socket);
std::string to_string(socket_address const& address);
/// The first address of this machine that other machines may reach, IPv4 before IPv6, without port.
/// Errors  io there is none
result<std::string> address_for_others();

/// Starts to connect; `send` reports how it went.
result<descriptor> start_connecting(socket_address const& to);
/// Connects.
/// Errors  io refused or not reachable; timeout
result<descriptor> connect_to(socket_address const& to, deadline end);

/// One connection that waits at `listener`, or none. `from` is the other end.
/// Errors  io this process has no descriptors or memory left
result<descriptor> accept_one(int listener, socket_address& from);

/// Whether both ends of a connection are on this machine, as far as their addresses say.
bool ends_here(int socket);

/// Whether what was sent has been sent again for longer than keep-alive would wait, and nothing at
/// all came back: data under way keeps keep-alive from asking. (TCP_USER_TIMEOUT would also end the
/// connection to a rank that lives, but is too busy to read.)
bool is_silent(int socket);

/// poll() that goes on after signals. Returns when something is ready or `end` has passed.
result<void> wait_for(std::span<pollfd> sockets, deadline end);

}  // namespace ferry
