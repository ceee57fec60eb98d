// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Values laid one after the other in bytes, as ranks send them to each other.
#pragma once

#include <ferry/base/result.hpp>
#include <ferry/group/bootstrap.hpp>

#include "base/fail.hpp"

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace ferry {

/// Appends values to bytes.
class packer {
 public:
  template <class T>
  requires std::is_trivially_copyable_v<T> packer& add(T const& value) {
    auto const* at = reinterpret_cast<std::byte const*>(&value);
    packed_.insert(packed_.end(), at, at + sizeof(T));
    return *this;
  }
  packer& add_text(std::string_view text) {
    add(static_cast<std::uint32_t>(text.size()));
    auto const* at = reinterpret_cast<std::byte const*>(text.data());
    packed_.insert(packed_.end(), at, at + text.size());
    return *this;
  }
  packer& add_bytes(std::span<std::byte const> more) {
    add(static_cast<std::uint32_t>(more.size()));
    packed_.insert(packed_.end(), more.begin(), more.end());
    return *this;
  }
  /// An error, or that there is none.
  packer& add_outcome(result<void> const& outcome) {
    add(outcome ? std::int32_t{-1} : static_cast<std::int32_t>(outcome.error().code));
    return add_text(outcome ? std::string_view{} : std::string_view{outcome.error().message});
  }
  bytes const& packed() const { return packed_; }

 private:
  bytes packed_;
};

/// Takes values from bytes, in the order in which they were added. After the first value that is
/// not there, all are empty and `complete()` is false.
class unpacker {
 public:
  explicit unpacker(std::span<std::byte const> rest) : rest_(rest) {}

  template <class T>
  requires std::is_trivially_copyable_v<T> T take() {
    T value{};
    if (auto const from = take_bytes(sizeof(T)); from.size() == sizeof(T))
      std::memcpy(&value, from.data(), sizeof(T));
    return value;
  }
  std::string take_text() {
    auto const from = take_bytes(take<std::uint32_t>());
    return {reinterpret_cast<char const*>(from.data()), from.size()};
  }
  bytes take_sized_bytes() {
    auto const from = take_bytes(take<std::uint32_t>());
    return {from.begin(), from.end()};
  }
  result<void> take_outcome() {
    auto const code = take<std::int32_t>();
    auto message = take_text();
    if (!complete_) return fail(error_code::malformed_input, "a peer's message ends too early");
    if (code == -1) return {};
    bool const known = code >= 0 && code <= static_cast<std::int32_t>(error_code::internal);
    return error{known ? static_cast<error_code>(code) : error_code::malformed_input,
                 std::move(message)};
  }
  bool complete() const { return complete_; }

 private:
  std::span<std::byte const> take_bytes(std::size_t count) {
    if (!complete_ || rest_.size() < count) {
      complete_ = false;
      return {};
    }
    auto const taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return taken;
  }
  std::span<std::byte const> rest_;
  bool complete_ = true;
};

}  // namespace ferry
