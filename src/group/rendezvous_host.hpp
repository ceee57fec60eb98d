// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Rank 0's part of the meeting.
#pragma once

#include "group/rendezvous.hpp"
#include "group/rendezvous_messages.hpp"

#include <list>
#include <string>

namespace ferry {

class rendezvous_host {
 public:
  rendezvous_host(rendezvous place, std::chrono::milliseconds timeout);

  /// Waits for all ranks and tells each where the others are.
  result<links> run();

 private:
  struct visitor {
    std::unique_ptr<link> line;
    socket_address from;
    deadline end;
    std::optional<hello> asked{};  ///< what the one said who still has to prove it
    challenge question{};
  };

  result<void> gather();
  result<void> let_in();
  void listen_to_visitors();
  /// Errors  why the one who said it is refused
  result<void> judge(hello const& said) const;
  /// Whether the visit is over.
  bool listen_to(visitor& who);
  bool hear_hello(visitor& who);
  bool hear_proof(visitor& who);
  void turn_away(visitor& who, result<void> const& why);
  void admit(visitor& who, hello const& said);
  result<void> look_after_admitted() const;
  result<void> send_table();
  error missing() const;

  rendezvous place_;
  std::chrono::milliseconds const timeout_;
  deadline end_;
  links admitted_;
  std::vector<socket_address> addresses_;
  int num_admitted_ = 1;
  std::list<visitor> visitors_;
  std::string last_refusal_;
};

}  // namespace ferry
