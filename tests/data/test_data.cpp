// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "data/test_data.hpp"

namespace ferry::test {

std::filesystem::path const& test_data() {
  static std::filesystem::path const folder = FERRY_TEST_DATA;
  return folder;
}

}  // namespace ferry::test
