// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// libFuzzer's entry: the bytes come over a connection, from somebody who may be no rank.

#include "group/link.hpp"
#include "group/rendezvous_messages.hpp"
#include "group/sha256.hpp"

#include <sys/socket.h>

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace ferry;
  if (size == 0) return 0;
  // The first byte chooses whether the sender is known, the second part where his bytes are cut.
  bool const stranger = data[0] & 1;
  std::size_t const cut = data[0] / 2 % size;
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return 0;
  descriptor const other(ends[1]);
  ferry::link line{descriptor(ends[0]), stranger ? max_stranger_bytes : max_frame_bytes};
  std::size_t begin = 1;
  for (std::size_t const end : {1 + cut, size}) {
    if (end > begin) ::send(other.number(), data + begin, end - begin, MSG_DONTWAIT | MSG_NOSIGNAL);
    begin = std::max(begin, end);
    line.read();
  }
  std::size_t frames = 0;
  while (auto const got = line.next()) {
    ++frames;
    if (got->payload.size() > size) std::abort();
    unpacker rest{got->payload};
    static_cast<void>(rest.take<hello>());
    static_cast<void>(rest.take<digest>());
    static_cast<void>(unpacker{got->payload}.take_outcome());
    static_cast<void>(unpacker{got->payload}.take_sized_bytes());
    auto const table = address_table::from(got->payload, 3);
    if (table && table->addresses.size() != 3) std::abort();
  }
  if (frames * 24 > size) std::abort();
  return 0;
}
