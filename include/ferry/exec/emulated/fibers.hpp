// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Functions of one thread that give way to each other: the lanes of emulated teams.
#pragma once

#include <ferry/base/result.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ferry {

/// Runs functions in an order drawn anew each turn, so that code which leaves out a barrier gives
/// wrong results, and notices when they wait for each other in vain.
/// Lifetime  objects on the stack of a function that never ends are not destroyed
class fibers {
 public:
  explicit fibers(std::uint64_t seed);
  ~fibers();
  fibers(fibers const&) = delete;

  /// Calls body(0) ... body(count - 1), each until it gives way or ends.
  /// Errors   device those that have not ended wait at places where the others will not come: the
  ///          message says how many wait where; out_of_memory
  result<void> run(int count, std::function<void(int)> const& body);

  /// From here on for use in `body`. Lets the others run; the words, which must last as long as the
  /// call, say at which call of whose this one waits.
  void give_way(char const* call, char const* of);
  /// The same, while waiting for something outside: the thread rests when all do.
  void give_way_outside();
  /// The number of the one that runs.
  int current() const { return current_index_; }
  /// Something happened that others may wait for.
  void happened() { ++events_; }
  /// They have parted for good: `run` ends with this message. Does not return.
  [[noreturn]] void part(std::string what);

 private:
  struct fiber;
  void start(int count);
  void run_once(fiber& f);
  void rest(int idle_turns);
  error stuck() const;
  static void enter(unsigned high, unsigned low);

  struct scheduler;
  std::unique_ptr<scheduler> scheduler_;
  std::vector<std::unique_ptr<fiber>> all_;
  std::vector<fiber*> left_;
  std::function<void(int)> const* body_ = nullptr;
  fiber* current_ = nullptr;
  int current_index_ = 0;
  int events_ = 0;
  int outside_ = 0;
  std::string parted_;
};

}  // namespace ferry
