// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// A piece of work that is kept where it stands: putting one on a queue allocates nothing.
#pragma once

#include <ferry/base/result.hpp>

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace ferry {

/// A callable that returns result<void>. What is larger than `room` (kernels of emulated devices)
/// lies on the heap; everything of CPU queues is smaller.
class host_job {
 public:
  static constexpr std::size_t room = 320;

  host_job() = default;
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, host_job>) host_job(F&& work) {
    using plain = std::remove_cvref_t<F>;
    if constexpr (sizeof(plain) <= room)
      keep<plain>(std::forward<F>(work));
    else
      keep<boxed<plain>>(boxed<plain>{std::make_unique<plain>(std::forward<F>(work))});
  }
  host_job(host_job&& other) noexcept { take(other); }
  host_job& operator=(host_job&& other) noexcept {
    if (this == &other) return *this;
    drop();
    take(other);
    return *this;
  }
  ~host_job() { drop(); }

  result<void> operator()() { return does_->call(place_); }

 private:
  struct actions {
    result<void> (*call)(void*);
    void (*move)(void* from, void* to) noexcept;
    void (*destroy)(void*) noexcept;
  };
  template <class F>
  struct boxed {
    std::unique_ptr<F> work;
    result<void> operator()() { return (*work)(); }
  };
  template <class F>
  static constexpr actions actions_of{[](void* at) { return (*static_cast<F*>(at))(); },
                                      [](void* from, void* to) noexcept {
                                        ::new (to) F(std::move(*static_cast<F*>(from)));
                                        static_cast<F*>(from)->~F();
                                      },
                                      [](void* at) noexcept { static_cast<F*>(at)->~F(); }};

  template <class F, class From>
  void keep(From&& work) {
    ::new (static_cast<void*>(place_)) F(std::forward<From>(work));
    does_ = &actions_of<F>;
  }
  void take(host_job& other) noexcept {
    does_ = std::exchange(other.does_, nullptr);
    if (does_) does_->move(other.place_, place_);
  }
  void drop() noexcept {
    if (does_) std::exchange(does_, nullptr)->destroy(place_);
  }

  alignas(std::max_align_t) std::byte place_[room];
  actions const* does_ = nullptr;
};

}  // namespace ferry
