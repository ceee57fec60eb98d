// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "transport/peer_address.hpp"

#include "base/fail.hpp"

#include <cstring>

namespace ferry {
namespace {

constexpr std::uint32_t most_endpoint_bytes = 256;

template <class T>
void append(std::vector<std::byte>& to, T value) {
  auto const* const at = reinterpret_cast<std::byte const*>(&value);
  to.insert(to.end(), at, at + sizeof value);
}

/// Takes values from the front; remembers that there were too few bytes.
class unpacker {
 public:
  explicit unpacker(std::span<std::byte const> bytes) : left_(bytes) {}
  template <class T>
  T take() {
    T value{};
    if (std::span<std::byte const> const at = take_bytes(sizeof value); !at.empty())
      std::memcpy(&value, at.data(), sizeof value);
    return value;
  }
  std::span<std::byte const> take_bytes(std::size_t count) {
    if (count > left_.size()) {
      short_ = true;
      left_ = {};
      return {};
    }
    auto const taken = left_.first(count);
    left_ = left_.subspan(count);
    return taken;
  }
  bool right() const { return !short_ && left_.empty(); }
  bool too_short() const { return short_; }

 private:
  std::span<std::byte const> left_;
  bool short_ = false;
};

}  // namespace

std::vector<std::byte> pack_address(peer_window const& window,
                                    std::vector<std::vector<std::byte>> const& endpoints) {
  std::vector<std::byte> made;
  append(made, window.address);
  append(made, window.bytes);
  append(made, window.key);
  append(made, static_cast<std::uint32_t>(endpoints.size()));
  for (auto const& e : endpoints) {
    append(made, static_cast<std::uint32_t>(e.size()));
    made.insert(made.end(), e.begin(), e.end());
  }
  return made;
}

result<peer_address> unpack_address(int rank, std::span<std::byte const> address, int mine) {
  unpacker from(address);
  peer_address made;
  made.window.address = from.take<std::uint64_t>();
  made.window.bytes = from.take<std::uint64_t>();
  made.window.key = from.take<std::uint32_t>();
  auto const count = from.take<std::uint32_t>();
  if (static_cast<std::uint32_t>(mine) >= count && !from.too_short())
    return fail(error_code::malformed_input, "rank {}'s address is for {} ranks, without rank {}",
                rank, count, mine);
  for (std::uint32_t i = 0; i < count && !from.too_short(); ++i) {
    auto const bytes = from.take<std::uint32_t>();
    if (bytes > most_endpoint_bytes)
      return fail(error_code::malformed_input,
                  "rank {}'s address has an endpoint of {} bytes; at most {}", rank, bytes,
                  most_endpoint_bytes);
    auto const endpoint = from.take_bytes(bytes);
    if (i == static_cast<std::uint32_t>(mine))
      made.endpoint.assign(endpoint.begin(), endpoint.end());
  }
  if (!from.right())
    return fail(error_code::malformed_input, "rank {}'s address has {} bytes, which do not fit it",
                rank, address.size());
  return made;
}

}  // namespace ferry
