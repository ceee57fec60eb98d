// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/exec/emulated/fibers.hpp>

#include "base/fail.hpp"

#include <sched.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <random>

namespace ferry {
namespace {

constexpr std::size_t stack_bytes = 64 << 10;
constexpr std::size_t guard_bytes = 4096;  // below each stack, so that one that is too deep faults

/// Stacks of this thread's fibers, kept from launch to launch: new pages cost more than kernels.
class stack_memory {
 public:
  ~stack_memory() {
    if (at_) munmap(at_, count_ * stack_bytes);
  }
  result<void> reserve(std::size_t count) {
    if (count <= count_) return {};
    void* const more = mmap(nullptr, count * stack_bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (more == MAP_FAILED)
      return fail_errno(error_code::out_of_memory, "stacks of emulated lanes", errno);
    if (at_) munmap(at_, count_ * stack_bytes);
    at_ = static_cast<std::byte*>(more);
    count_ = count;
    for (std::size_t i = 0; i < count; ++i) mprotect(at_ + i * stack_bytes, guard_bytes, PROT_NONE);
    return {};
  }
  std::byte* stack(int index) const {
    return at_ + static_cast<std::size_t>(index) * stack_bytes + guard_bytes;
  }

 private:
  std::byte* at_ = nullptr;
  std::size_t count_ = 0;
};

stack_memory& stacks() {
  static thread_local stack_memory all;
  return all;
}

}  // namespace

struct fibers::fiber {
  ucontext_t context;  ///< where it begins; from then on `at`: jumps need no system call
  jmp_buf at;
  bool begun = false;
  bool ended = false;
  fibers* of;
  int index;
  char const* call = "";  ///< where it waits
  char const* of_whose = "";
};

struct fibers::scheduler {
  explicit scheduler(std::uint64_t seed) : random(seed) {}
  std::mt19937_64 random;
  jmp_buf at;
};

fibers::fibers(std::uint64_t seed) : scheduler_(std::make_unique<scheduler>(seed)) {}
fibers::~fibers() = default;

void fibers::start(int count) {
  all_.clear();
  left_.clear();
  for (int i = 0; i < count; ++i) {
    auto f = std::make_unique<fiber>();
    f->of = this;
    f->index = i;
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = stacks().stack(i);
    f->context.uc_stack.ss_size = stack_bytes - guard_bytes;
    f->context.uc_link = nullptr;
    auto const at = reinterpret_cast<std::uintptr_t>(f.get());
    makecontext(&f->context, reinterpret_cast<void (*)()>(&enter), 2,
                static_cast<unsigned>(at >> 32), static_cast<unsigned>(at));
    left_.push_back(f.get());
    all_.push_back(std::move(f));
  }
}

result<void> fibers::run(int count, std::function<void(int)> const& body) {
  FERRY_CHECK(stacks().reserve(static_cast<std::size_t>(count)));
  body_ = &body;
  parted_.clear();
  start(count);
  for (int idle = 0; !left_.empty();) {
    events_ = outside_ = 0;
    std::shuffle(left_.begin(), left_.end(), scheduler_->random);
    for (fiber* f : left_) {
      run_once(*f);
      if (!parted_.empty()) return fail(error_code::device, "{}", parted_);
    }
    events_ += static_cast<int>(std::erase_if(left_, [](fiber* f) { return f->ended; }));
    if (events_ == 0 && outside_ == 0) return stuck();
    idle = events_ ? 0 : idle + 1;
    if (idle) rest(idle);
  }
  return {};
}

void fibers::run_once(fiber& f) {
  current_ = &f;
  current_index_ = f.index;
  if (_setjmp(scheduler_->at) != 0) return;
  if (current_->begun) _longjmp(current_->at, 1);
  current_->begun = true;
  setcontext(&current_->context);
}

// What is waited for is done by other threads, which may need this core.
void fibers::rest(int idle_turns) {
  if (idle_turns < 20) {
    sched_yield();
    return;
  }
  timespec const pause{0, idle_turns < 200 ? 20'000 : 200'000};
  nanosleep(&pause, nullptr);
}

error fibers::stuck() const {
  std::map<std::string, int> at;
  for (fiber const* f : left_) ++at[fmt::format("{} of {}", f->call, f->of_whose)];
  std::string text;
  for (auto const& [place, number] : at)
    text += fmt::format("{}{} at {}", text.empty() ? "" : ", ", number, place);
  return fail(error_code::device, "lanes have parted: {} of {} have ended, and wait for others: {}",
              all_.size() - left_.size(), all_.size(), text);
}

void fibers::give_way(char const* call, char const* of) {
  current_->call = call;
  current_->of_whose = of;
  if (_setjmp(current_->at) == 0) _longjmp(scheduler_->at, 1);
}

void fibers::give_way_outside() {
  ++outside_;
  if (_setjmp(current_->at) == 0) _longjmp(scheduler_->at, 1);
}

void fibers::part(std::string what) {
  parted_ = std::move(what);
  _longjmp(scheduler_->at, 1);
}

void fibers::enter(unsigned high, unsigned low) {
  auto* const f = reinterpret_cast<fiber*>(static_cast<std::uintptr_t>(high) << 32 | low);
  (*f->of->body_)(f->index);
  f->ended = true;
  _longjmp(f->of->scheduler_->at, 1);
}

}  // namespace ferry
