// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "group/socket.hpp"

#include "base/fail.hpp"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <future>
#include <limits>
#include <memory>
#include <system_error>
#include <thread>

namespace ferry {

result<std::uint16_t> parse_port(std::string_view text) {
  unsigned port = 0;
  auto const [stop, problem] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (problem != std::errc{} || stop != text.data() + text.size() || port < 1 || port > 65535)
    return fail(error_code::invalid_argument, "\"{}\" is no port from 1 to 65535", text);
  return static_cast<std::uint16_t>(port);
}

result<endpoint> parse_endpoint(std::string_view text) {
  auto const colon = text.rfind(':');
  if (colon == std::string_view::npos)
    return fail(error_code::invalid_argument, "address \"{}\" has no port; host:port", text);
  auto host = text.substr(0, colon);
  bool const brackets = host.size() >= 2 && host.front() == '[' && host.back() == ']';
  if (brackets) host = host.substr(1, host.size() - 2);
  if (host.empty())
    return fail(error_code::invalid_argument, "address \"{}\" has no host; host:port", text);
  if (!brackets && host.find(':') != std::string_view::npos)
    return fail(error_code::invalid_argument,
                "address \"{}\" is ambiguous; an ipv6 address stands in brackets: [::1]:4711",
                text);
  FERRY_TRY(auto const port, parse_port(text.substr(colon + 1)));
  return endpoint{std::string(host), port};
}

std::string to_string(endpoint const& where) {
  bool const colons = where.host.find(':') != std::string::npos;
  return fmt::format(fmt::runtime(colons ? "[{}]:{}" : "{}:{}"), where.host, where.port);
}

std::uint16_t socket_address::port() const {
  // Both families keep the port at the same place.
  return ntohs(reinterpret_cast<sockaddr_in const*>(&storage)->sin_port);
}
void socket_address::set_port(std::uint16_t port) {
  reinterpret_cast<sockaddr_in*>(&storage)->sin_port = htons(port);
}

std::string to_string(socket_address const& address) {
  char host[NI_MAXHOST];
  if (::getnameinfo(address.at(), address.length, host, sizeof host, nullptr, 0, NI_NUMERICHOST) !=
      0)
    return "an unknown address";
  return to_string(endpoint{host, address.port()});
}

namespace {

struct looked_up {
  int problem = 0;
  std::vector<socket_address> addresses;
};

looked_up look_up(endpoint const& where, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  looked_up answer;
  answer.problem = ::getaddrinfo(where.host.c_str(), nullptr, &hints, &found);
  if (answer.problem != 0) return answer;
  for (auto const* a = found; a != nullptr; a = a->ai_next) {
    if (a->ai_family != AF_INET && a->ai_family != AF_INET6) continue;
    socket_address address;
    std::memcpy(&address.storage, a->ai_addr, a->ai_addrlen);
    address.length = a->ai_addrlen;
    address.set_port(where.port);
    answer.addresses.push_back(address);
  }
  ::freeaddrinfo(found);
  return answer;
}

void set(int socket, int level, int option, int value) {
  ::setsockopt(socket, level, option, &value, sizeof value);
}

/// A machine that lost its power says no goodbye: keep-alive finds it missing after some 11 s.
constexpr int idle_seconds = 5, probe_seconds = 2, probes = 3;
constexpr std::uint32_t longest_silence_ms = 1000 * (idle_seconds + probes * probe_seconds);

void prepare(int socket) {
  set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPIDLE, idle_seconds);
  set(socket, IPPROTO_TCP, TCP_KEEPINTVL, probe_seconds);
  set(socket, IPPROTO_TCP, TCP_KEEPCNT, probes);
}

result<descriptor> new_socket(int family) {
  descriptor made{::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  if (!made) return fail_errno(error_code::io, "cannot make a socket", errno);
  return made;
}

}  // namespace

result<std::vector<socket_address>> resolve(endpoint const& where, deadline end) {
  auto answer = look_up(where, AI_NUMERICHOST);
  if (answer.problem != 0) {
    auto promise = std::make_shared<std::promise<looked_up>>();
    auto future = promise->get_future();
    try {
      std::thread([promise, where] { promise->set_value(look_up(where, 0)); }).detach();
    } catch (std::system_error const& e) {
      return fail(error_code::io, "cannot start a thread to look up \"{}\": {}", where.host,
                  e.what());
    }
    if (future.wait_until(end) != std::future_status::ready)
      return fail(error_code::timeout, "the name \"{}\" was not resolved in time", where.host);
    answer = future.get();
  }
  if (answer.problem != 0 || answer.addresses.empty())
    return fail(error_code::io, "cannot resolve \"{}\": {}", where.host,
                answer.problem ? ::gai_strerror(answer.problem) : "it has no internet address");
  return std::move(answer.addresses);
}

result<descriptor> listen_at(socket_address const& where) {
  auto const refused = [&] {
    return fail_errno(error_code::io, fmt::format("cannot listen at {}", to_string(where)), errno);
  };
  FERRY_TRY(auto made, new_socket(where.storage.ss_family));
  set(made.number(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (::bind(made.number(), where.at(), where.length) != 0) return refused();
  if (::listen(made.number(), SOMAXCONN) != 0) return refused();
  return made;
}

result<socket_address> local_address(int socket) {
  socket_address mine;
  mine.length = sizeof mine.storage;
  if (::getsockname(socket, mine.at(), &mine.length) != 0)
    return fail_errno(error_code::io, "cannot ask for a socket's address", errno);
  return mine;
}

result<std::string> address_for_others() {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0)
    return fail_errno(error_code::io, "cannot ask for this machine's addresses", errno);
  std::string found;
  for (int family : {AF_INET, AF_INET6}) {
    for (auto const* a = all; a != nullptr && found.empty(); a = a->ifa_next) {
      bool const usable = a->ifa_addr && a->ifa_addr->sa_family == family &&
                          (a->ifa_flags & IFF_UP) && !(a->ifa_flags & IFF_LOOPBACK);
      // A link-local address means nothing without the interface, whose name differs elsewhere.
      if (!usable ||
          (family == AF_INET6 &&
           IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<sockaddr_in6 const*>(a->ifa_addr)->sin6_addr)))
        continue;
      char host[NI_MAXHOST];
      socklen_t const length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
      if (::getnameinfo(a->ifa_addr, length, host, sizeof host, nullptr, 0, NI_NUMERICHOST) == 0)
        found = host;
    }
  }
  ::freeifaddrs(all);
  if (found.empty())
    return fail(error_code::io, "this machine has no address that another could reach");
  return found;
}

result<descriptor> start_connecting(socket_address const& to) {
  FERRY_TRY(auto made, new_socket(to.storage.ss_family));
  prepare(made.number());
  int outcome = 0;
  do outcome = ::connect(made.number(), to.at(), to.length);
  while (outcome != 0 && errno == EINTR);
  if (outcome != 0 && errno != EINPROGRESS && errno != EALREADY && errno != EISCONN)
    return fail_errno(error_code::io, fmt::format("cannot connect to {}", to_string(to)), errno);
  return made;
}

result<descriptor> connect_to(socket_address const& to, deadline end) {
  FERRY_TRY(auto made, start_connecting(to));
  pollfd ready{made.number(), POLLOUT, 0};
  FERRY_CHECK(wait_for({&ready, 1}, end));
  if (ready.revents == 0)
    return fail(error_code::timeout, "{} did not answer in time", to_string(to));
  int problem = 0;
  socklen_t length = sizeof problem;
  ::getsockopt(made.number(), SOL_SOCKET, SO_ERROR, &problem, &length);
  if (problem != 0)
    return fail_errno(error_code::io, fmt::format("cannot connect to {}", to_string(to)), problem);
  // Where nobody listens on a port of the ephemeral range, a socket can meet itself.
  FERRY_TRY(auto const mine, local_address(made.number()));
  if (mine.length == to.length && std::memcmp(&mine.storage, &to.storage, to.length) == 0)
    return fail(error_code::io, "nobody listens at {}", to_string(to));
  return made;
}

result<descriptor> accept_one(int listener, socket_address& from) {
  from.length = sizeof from.storage;
  int const accepted = ::accept4(listener, from.at(), &from.length, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (accepted >= 0) {
    prepare(accepted);
    return descriptor{accepted};
  }
  if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
    return fail_errno(error_code::io, "cannot accept a connection", errno);
  return descriptor{};  // somebody came and went
}

bool ends_here(int socket) {
  socket_address mine, theirs;
  mine.length = theirs.length = sizeof mine.storage;
  if (::getsockname(socket, mine.at(), &mine.length) != 0 ||
      ::getpeername(socket, theirs.at(), &theirs.length) != 0 ||
      mine.storage.ss_family != theirs.storage.ss_family)
    return false;
  auto const same = [&]<class A>(A const& a, A const& b, auto member) {
    return std::memcmp(&(a.*member), &(b.*member), sizeof(a.*member)) == 0;
  };
  if (mine.storage.ss_family == AF_INET)
    return same(reinterpret_cast<sockaddr_in const&>(mine.storage),
                reinterpret_cast<sockaddr_in const&>(theirs.storage), &sockaddr_in::sin_addr);
  return mine.storage.ss_family == AF_INET6 &&
         same(reinterpret_cast<sockaddr_in6 const&>(mine.storage),
              reinterpret_cast<sockaddr_in6 const&>(theirs.storage), &sockaddr_in6::sin6_addr);
}

bool is_silent(int socket) {
  tcp_info about{};
  socklen_t length = sizeof about;
  if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &about, &length) != 0) return false;
  // One that is still connecting has never heard anything.
  return about.tcpi_state == TCP_ESTABLISHED && about.tcpi_unacked > 0 &&
         about.tcpi_retransmits > 0 && about.tcpi_last_ack_recv >= longest_silence_ms;
}

result<void> wait_for(std::span<pollfd> sockets, deadline end) {
  for (;;) {
    auto const rest = std::min<std::int64_t>(until(end).count(), std::numeric_limits<int>::max());
    int const ready = ::poll(sockets.data(), sockets.size(), static_cast<int>(rest));
    if (ready >= 0) return {};
    if (errno != EINTR) return fail_errno(error_code::io, "cannot wait for sockets", errno);
  }
}

}  // namespace ferry
