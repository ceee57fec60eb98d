// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "base/shared_library.hpp"

#include "base/fail.hpp"

#include <dlfcn.h>

namespace ferry {

result<shared_library> shared_library::open(std::string const& name) {
  void* const handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle) return shared_library(name, handle);
  char const* const why = ::dlerror();
  return fail(error_code::unsupported, "{} cannot be loaded: {}", name,
              why ? why : "no reason given");
}

shared_library::~shared_library() {
  if (handle_) ::dlclose(handle_);
}

void* shared_library::address_of(char const* function) {
  void* const at = ::dlsym(handle_, function);
  if (!at && missing_.empty()) missing_ = function;
  return at;
}

result<void> shared_library::complete() const {
  if (missing_.empty()) return {};
  return fail(error_code::unsupported, "{} is not the library that it should be: it has no {}",
              name_, missing_);
}

}  // namespace ferry
