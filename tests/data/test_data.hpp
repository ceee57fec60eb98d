// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Where the tests' files lie. Said by one object file, so that no other depends on the folder that
/// the repository lies in.
#pragma once

#include <filesystem>

namespace ferry::test {

/// The folder tests/data.
std::filesystem::path const& test_data();

}  // namespace ferry::test
