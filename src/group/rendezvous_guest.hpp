// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The other ranks' part of the meeting.
#pragma once

#include "group/rendezvous.hpp"
#include "group/rendezvous_messages.hpp"

#include <list>
#include <string>

namespace ferry {

class rendezvous_guest {
 public:
  rendezvous_guest(rendezvous place, std::chrono::milliseconds timeout);

  /// Says hello to rank 0, then connects to all the others.
  result<links> run();

 private:
  struct visitor {
    std::unique_ptr<link> line;
    deadline end;
  };

  result<void> say_hello();
  /// One attempt, until `end`. Nothing when somebody took the connection and closed it without a
  /// word.
  result<bool> try_hello(socket_address const& host, deadline end);
  result<bool> wait_for_welcome(hello const& said, deadline end);
  result<void> answer(hello const& said, frame const& asked);
  result<void> check_welcome(hello const& said, frame const& got) const;
  /// What ranks `from` and `to` know each other by.
  secret sign(int from, int to) const;
  result<address_table> wait_for_table();
  result<void> connect_all();
  result<void> connect_lower_ranks();
  result<void> let_in();
  result<void> listen_to_lower_ranks();
  void listen_to_visitors();
  result<void> listen_to_host();
  /// What rank 0 says of it, if it does so soon: it sees deaths that this rank can only guess.
  error explained(error guess);
  error too_late(std::string const& why) const;
  bool complete() const;

  rendezvous place_;
  std::chrono::milliseconds const timeout_;
  deadline const end_;
  address_table table_;
  links links_;
  std::vector<bool> greeted_;
  std::list<visitor> visitors_;
  std::optional<challenge> asked_;
};

}  // namespace ferry
