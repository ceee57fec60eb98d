// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// A directory for one test's files.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <stdexcept>
#include <string>

namespace ferry::test {

/// Made empty, and gone with all that is in it when the object goes.
class scratch_directory {
 public:
  scratch_directory() {
    auto pattern = (std::filesystem::temp_directory_path() / "ferry-test-XXXXXX").string();
    if (!mkdtemp(pattern.data())) throw std::runtime_error("cannot make " + pattern);
    path_ = pattern;
  }
  scratch_directory(scratch_directory const&) = delete;
  ~scratch_directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::filesystem::path const& path() const { return path_; }
  std::filesystem::path operator/(std::string const& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace ferry::test
