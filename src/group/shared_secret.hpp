// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// How ranks that meet over TCP show each other that they know a secret, without telling it.
#pragma once

#include "group/machine.hpp"
#include "group/rendezvous_messages.hpp"
#include "group/sha256.hpp"

#include <string>

namespace ferry {

/// What a rank answers to rank 0's challenge; it covers all that the rank has said.
digest proof_of_rank(std::string const& secret, hello const& said, challenge const& asked);
/// What rank 0 answers to the same rank, which would not take just anybody for rank 0.
digest proof_of_host(std::string const& secret, hello const& said, challenge const& asked);
/// What two ranks greet each other with in place of the meeting's own secret.
ferry::secret sign_greeting(std::string const& secret, greeting const& g);

}  // namespace ferry
