// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// A file descriptor that is closed when its owner goes.
#pragma once

#include <unistd.h>

#include <utility>

namespace ferry {

class descriptor {
 public:
  descriptor() = default;
  explicit descriptor(int number) : number_(number) {}
  descriptor(descriptor&& from) noexcept : number_(from.release()) {}
  descriptor& operator=(descriptor&& from) noexcept {
    if (this != &from) {
      close();
      number_ = from.release();
    }
    return *this;
  }
  ~descriptor() { close(); }

  int number() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }
  int release() { return std::exchange(number_, -1); }
  void close() {
    if (number_ >= 0) ::close(release());
  }

 private:
  int number_ = -1;
};

}  // namespace ferry
