// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// ferry-place: where should the experts of each layer live?

#include "options.hpp"
#include "picture.hpp"
#include "report.hpp"
#include "solve.hpp"

#include <fmt/core.h>

#include <cstdio>
#include <exception>
#include <variant>

namespace ferry::place_tool {
namespace {

result<void> run(options const& o) {
  FERRY_TRY(auto all, solve(o));
  if (o.json_file) FERRY_CHECK(write_text(*o.json_file, json_of(all)));
  if (o.svg_file) FERRY_CHECK(write_text(*o.svg_file, picture_of(all)));
  fmt::print("{}", table_of(all, o));
  if (std::fflush(stdout) != 0)
    return error{error_code::io, "the table cannot be written to standard output"};
  return {};
}

int place_main(int argc, char** argv) {
  auto parsed = parse(argc, argv);
  if (auto* status = std::get_if<int>(&parsed)) return *status;
  auto const done = run(std::get<options>(parsed));
  if (done) return 0;
  fmt::print(stderr, "ferry-place: {}: {}\n", to_string(done.error().code), done.error().message);
  return 1;
}

}  // namespace
}  // namespace ferry::place_tool

int main(int argc, char** argv) {
  try {
    return ferry::place_tool::place_main(argc, argv);
  } catch (std::exception const& e) {
    std::fprintf(stderr, "ferry-place: %s\n", e.what());
    return 1;
  }
}
