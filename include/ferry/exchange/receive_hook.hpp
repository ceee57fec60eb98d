// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The second half of a call whose first half has been put on a queue.
#pragma once

#include <ferry/base/result.hpp>

#include <functional>
#include <utility>

namespace ferry {

/// What a microbatch has left to do when its turn comes again: usually dispatch_receive or
/// combine_receive. It runs exactly once. A null hook is nothing to do, however often it is called.
/// Lifetime  what the function uses must outlive the hook; a hook moves and is not copied
class receive_hook {
 public:
  receive_hook() = default;
  explicit receive_hook(std::function<result<void>()> receive) : receive_(std::move(receive)) {}
  receive_hook(receive_hook&& other) noexcept
      : receive_(std::exchange(other.receive_, nullptr)),
        done_(std::exchange(other.done_, false)) {}
  receive_hook& operator=(receive_hook&& other) noexcept {
    receive_ = std::exchange(other.receive_, nullptr);
    done_ = std::exchange(other.done_, false);
    return *this;
  }

  /// Errors   invalid_state it ran before; what the function returns
  result<void> operator()() {
    if (done_) return error{error_code::invalid_state, "a receive hook runs once, and it has run"};
    if (!receive_) return {};
    done_ = true;
    return std::exchange(receive_, nullptr)();
  }
  /// Whether there is something left to do.
  bool pending() const { return static_cast<bool>(receive_); }

 private:
  std::function<result<void>()> receive_;
  bool done_ = false;
};

}  // namespace ferry
