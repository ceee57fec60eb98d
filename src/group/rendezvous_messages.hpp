// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// What ranks tell each other while they meet.
#pragma once

#include "group/link.hpp"
#include "group/machine.hpp"
#include "group/packed.hpp"
#include "group/socket.hpp"

#include <cstdint>
#include <optional>
#include <type_traits>
#include <vector>

namespace ferry {

/// Raised whenever a message below, or a frame, changes.
inline constexpr std::uint32_t rendezvous_version = 3;

/// To rank 0.
struct hello {
  std::uint32_t version = rendezvous_version;
  std::int32_t rank = 0;
  std::int32_t size = 0;
  std::uint32_t port = 0;  ///< where this rank listens
  secret job{};
  std::int64_t patience_ms = 0;  ///< how long this rank will still wait
  std::uint64_t proves = 0;      ///< 1: this rank knows a shared secret, and wants rank 0 to
  secret nonce{};                ///< drawn by this rank, for the proofs
};
static_assert(std::has_unique_object_representations_v<hello>, "proofs cover its bytes");

/// From rank 0, which asks for a proof.
struct challenge {
  secret nonce{};
};

/// Between two ranks that are not rank 0.
struct greeting {
  secret session{};  ///< of this meeting; only its ranks know it. With a shared secret: signed
  std::int32_t from = 0;
  std::int32_t to = 0;
};

/// From rank 0 to all.
struct address_table {
  secret session{};
  std::vector<socket_address> addresses;

  bytes packed() const {
    packer to;
    to.add(session).add(static_cast<std::uint32_t>(addresses.size()));
    for (auto const& a : addresses) to.add(a);
    return to.packed();
  }
  static result<address_table> from(std::span<std::byte const> packed, int size) {
    unpacker rest{packed};
    address_table table;
    table.session = rest.take<secret>();
    auto const count = rest.take<std::uint32_t>();
    if (count != static_cast<std::uint32_t>(size))
      return fail(error_code::malformed_input, "rank 0 sent the addresses of {} ranks, not of {}",
                  count, size);
    for (std::uint32_t i = 0; i < count; ++i)
      table.addresses.push_back(rest.take<socket_address>());
    if (!rest.complete())
      return fail(error_code::malformed_input, "rank 0's table of addresses ends too early");
    return table;
  }
};

/// The first frame of the wanted kind and size, once it is there. Anything else is no rank.
template <class Message>
struct first_message {
  std::optional<Message> message;
  bool wrong = false;
};
template <class Message>
first_message<Message> first_of(link& from, frame_kind kind) {
  auto const got = from.next();
  if (!got) return {std::nullopt, from.peer() != presence::here};
  unpacker rest{got->payload};
  auto const message = rest.take<Message>();
  if (got->kind != kind || !rest.complete()) return {std::nullopt, true};
  return {message, false};
}

}  // namespace ferry
