// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// A library that is loaded on demand, and its functions by name.
#pragma once

#include <ferry/base/result.hpp>

#include <string>
#include <utility>

namespace ferry {

/// Closed again unless it is kept, which is for the life of the process.
class shared_library {
 public:
  /// Errors   unsupported naming the library and the loader's reason
  static result<shared_library> open(std::string const& name);
  ~shared_library();
  shared_library(shared_library&& other) noexcept
      : name_(std::move(other.name_)),
        missing_(std::move(other.missing_)),
        handle_(std::exchange(other.handle_, nullptr)) {}
  shared_library& operator=(shared_library&&) = delete;

  template <class F>
  void find(char const* function, F& into) {
    into = reinterpret_cast<F>(address_of(function));
  }

  /// Errors   unsupported naming the first function that was looked for in vain
  result<void> complete() const;
  void keep() { handle_ = nullptr; }

 private:
  shared_library(std::string name, void* handle) : name_(std::move(name)), handle_(handle) {}
  void* address_of(char const* function);

  std::string name_, missing_;
  void* handle_;
};

}  // namespace ferry
