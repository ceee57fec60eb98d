// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Passing a descriptor to another process over a socket of the abstract namespace.
#pragma once

#include <ferry/base/result.hpp>

#include "group/machine.hpp"
#include "memory/descriptor.hpp"

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>

namespace ferry {

/// What goes with a descriptor: one packet, so it comes whole or not at all.
struct handover_note {
  std::array<char, 8> magic = {'f', 'e', 'r', 'r', 'y', 'w', 'i', 'n'};
  std::int32_t from = 0;
  std::int32_t to = 0;
  std::int32_t refused = 0;  ///< 1: no descriptor comes, though the window has bytes
  std::int32_t unused = 0;
  secret key{};  ///< of the rank that is spoken to
};

struct handed_over {
  handover_note note;
  descriptor file;  ///< none when the window has no bytes
};

/// Listens at the abstract name.
result<descriptor> listen_for_handover(secret const& name);

/// Connects at once, or says that the listener has no room just now (none).
/// Errors   unreachable nobody listens there, or this process may not reach it; io
result<std::optional<descriptor>> connect_for_handover(secret const& name);

/// The user whom the kernel knows at the other end.
result<uid_t> user_at(int socket);
/// Windows are for one user, and for root.
bool may_share(uid_t mine, uid_t theirs);

/// Sends the note, with `file` unless it is -1. Never blocks: the first packet always fits.
result<void> hand_over(int socket, handover_note const& note, int file);

/// The packet that waits, or none yet.
/// Errors   unreachable the other end closed; malformed_input another kind of packet; io
result<std::optional<handed_over>> take_over(int socket);

}  // namespace ferry
