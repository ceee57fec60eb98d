// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// What layers above have to say to a capture: whether their part of it is whole, and, before each
/// launch, whether it may run.
#pragma once

#include <ferry/base/result.hpp>
#include <ferry/exec/queue.hpp>

#include <mutex>
#include <utility>
#include <vector>

namespace ferry {

/// Something whose calls can be captured.
class capture_member {
 public:
  /// Asked once, when the captured work has returned.
  /// Errors   invalid_state what was captured cannot be run by itself
  virtual result<void> is_whole() const = 0;
  /// The capture came to nothing: none of its calls will ever run.
  virtual void forget_capture() = 0;
  /// Asked before every launch. The queue is the one that the graph is launched on.
  virtual result<void> may_launch(queue const& q) = 0;

 protected:
  ~capture_member() = default;
};

/// The members of one capture.
class capture_record {
 public:
  void add(capture_member& m) {
    std::lock_guard const lock(guard_);
    for (capture_member const* known : members_)
      if (known == &m) return;
    members_.push_back(&m);
  }
  result<void> is_whole() const {
    for (capture_member const* m : members_)
      if (result<void> whole = m->is_whole(); !whole) return whole;
    return {};
  }
  void forget() {
    for (capture_member* m : members_) m->forget_capture();
  }
  std::vector<capture_member*> take_members() { return std::move(members_); }

  /// The capture that the calling thread's calls may belong to, or null.
  static capture_record* current();

  /// Whether a call on `q` by this thread is captured.
  /// Errors   invalid_state it would be done once, now, and by no replay: the thread captures, and
  ///          `q` takes no part; or `q` is captured, and the thread takes no part
  static result<bool> takes(queue const& q);
  /// The same errors, where the answer is of no interest: asks a vendor's runtime within captures
  /// alone.
  static result<void> allows(queue const& q);
  /// Errors   invalid_state the thread captures, and a replay could not repeat `what`
  static result<void> refuses(char const* what);

  /// Lets the calling thread take part in a capture (null: in none) while it lives.
  class scope {
   public:
    explicit scope(capture_record* joined);
    ~scope();
    scope(scope const&) = delete;

   private:
    capture_record* before_;
  };

 private:
  std::mutex guard_;
  std::vector<capture_member*> members_;
};

}  // namespace ferry
