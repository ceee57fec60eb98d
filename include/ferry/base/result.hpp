// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// `result<T>`: a value or an error. Every public function of ferry that can fail returns one.
#pragma once

#include <ferry/base/platform.hpp>

#include <optional>
#include <source_location>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

namespace ferry {

/// What kind of thing went wrong. The list is closed: a program may switch over it.
enum class error_code {
  invalid_argument,  ///< a value outside its limits; the message names both
  invalid_state,     ///< a call that may not come now; nothing was changed, it may be repeated
  malformed_input,   ///< a file or message that breaks its format
  io,                ///< the operating system refused a file or a socket
  unsupported,       ///< right in itself, but not on this machine or in this build
  out_of_memory,     ///< the memory asked for is not there
  capacity,          ///< more rows arrived than the layout holds; none was written past its end
  unreachable,       ///< a peer's process is gone
  timeout,           ///< a peer lives, but did not come before the deadline
  transport,         ///< a transport failed in a way of its own
  device,            ///< a device or its runtime failed
  internal,          ///< a bug in ferry
};

/// The code's name as it stands above, for messages and logs.
char const* to_string(error_code code);

/// One failure. `message` is lower case, names the value and the limit, and is written where the
/// cause is first known; callers pass it on unchanged.
struct error {
  error_code code;
  std::string message;
  std::source_location where = std::source_location::current();
};

/// Thrown by `result::value()`, and by nothing else in ferry.
class bad_result : public std::runtime_error {
 public:
  explicit bad_result(struct error e);
  struct error const& error() const noexcept {
    return error_;
  }

 private:
  struct error error_;
};

/// A T, or the error that stood in its way.
/// Lifetime  owns what it holds
/// Errors    `value()` throws `bad_result`; `*` and `->` on an error are broken preconditions
template <class T>
class [[nodiscard]] result {
 public:
  using value_type = T;

  result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  result(struct error e) : state_(std::in_place_index<1>, std::move(e)) {}

  bool has_value() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }

  T& value() & { return throw_if_error(), *std::get_if<0>(&state_); }
  T const& value() const& { return throw_if_error(), *std::get_if<0>(&state_); }
  /// By value: `for (auto& x : f().value())` must not look into a result that is gone.
  T value() && { return throw_if_error(), std::move(*std::get_if<0>(&state_)); }

  T& operator*() & { return *std::get_if<0>(&state_); }
  T const& operator*() const& { return *std::get_if<0>(&state_); }
  T operator*() && { return std::move(*std::get_if<0>(&state_)); }
  T* operator->() { return std::get_if<0>(&state_); }
  T const* operator->() const { return std::get_if<0>(&state_); }

  struct error const& error() const& {
    return *std::get_if<1>(&state_);
  }
  struct error&& error() && {
    return std::move(*std::get_if<1>(&state_));
  }

 private:
  void throw_if_error() const {
    if (!has_value()) throw bad_result(error());
  }
  std::variant<T, struct error> state_;
};

/// Done, or the error that stood in the way.
template <>
class [[nodiscard]] result<void> {
 public:
  using value_type = void;

  result() = default;
  result(struct error e) : error_(std::move(e)) {}

  bool has_value() const noexcept { return !error_.has_value(); }
  explicit operator bool() const noexcept { return has_value(); }
  void value() const {
    if (error_) throw bad_result(*error_);
  }
  struct error const& error() const& {
    return *error_;
  }
  struct error&& error() && {
    return std::move(*error_);
  }

 private:
  std::optional<struct error> error_;
};

}  // namespace ferry
