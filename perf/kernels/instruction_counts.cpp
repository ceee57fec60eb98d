// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// Work for valgrind's callgrind to count: one kernel of a step, on one thread, without a wait.
// perf/compare runs it; instructions do not depend on what else the machine does.
//
// usage: ferry_instruction_counts CASE | --list | --about

#include "lone_step.hpp"

#include <ferry/exec/cpu/code_level.hpp>

#include <gnu/libc-version.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>

using namespace ferry;
using namespace ferry::perf;

/// callgrind counts while this runs (--toggle-collect=measured_part).
extern "C" __attribute__((noinline)) void measured_part(std::function<void()> const& f) {
  f();
}

namespace {

struct counted_case {
  char const* name;
  lone_shape shape;
  int measured;  ///< which of the four calls; -1: all
  bool sums = false;
};

constexpr lone_shape small(wire w = wire::bf16, layout l = layout::grouped,
                           reduction r = reduction::per_rank) {
  return {.tokens = 32,
          .hidden = 2048,
          .topk = 8,
          .experts = 64,
          .wire = w,
          .layout = l,
          .reduction = r};
}

counted_case const cases[] = {
    {"send_bf16", small(), 0},
    {"send_opaque", small(wire::opaque), 0},
    {"send_fp8_e4m3", small(wire::fp8_e4m3), 0},
    {"send_fp8_e4m3fnuz", small(wire::fp8_e4m3fnuz), 0},
    {"send_fp8_ue8m0", small(wire::fp8_ue8m0), 0},
    {"receive_in_place", small(wire::bf16, layout::in_place), 1},
    {"receive_grouped", small(), 1},
    {"give_back_per_rank", small(), 2},
    {"give_back_per_choice", small(wire::bf16, layout::grouped, reduction::per_choice), 2},
    {"give_back_sums", small(), 2, true},
    {"gather_per_rank", small(), 3},
    {"gather_per_choice", small(wire::bf16, layout::grouped, reduction::per_choice), 3},
    {"step_of_no_tokens", {.tokens = 0, .hidden = 2048}, -1},
};

void run(counted_case const& c) {
  lone_step step(c.shape);
  std::function<void()> const calls[] = {[&] { step.send(); }, [&] { step.receive(); },
                                         [&] { c.sums ? step.give_back_sums() : step.give_back(); },
                                         [&] { step.gather(); }};
  // The first step of a process resolves its calls into libraries.
  for (int turn = 0; turn < 2; ++turn)
    for (int i = 0; i < 4; ++i) {
      if (turn == 1 && (c.measured < 0 || c.measured == i))
        measured_part(calls[i]);
      else
        calls[i]();
    }
}

/// What counts depend on beside ferry's source.
int about() {
  auto const level = chosen_code_level();
  if (!level) {
    std::fprintf(stderr, "%s\n", level.error().message.c_str());
    return 1;
  }
  std::printf("g++ %s, glibc %s, level v%d\n", __VERSION__, gnu_get_libc_version(),
              static_cast<int>(*level));
  return 0;
}

int find_and_run(char const* name) {
  for (counted_case const& c : cases) {
    if (std::strcmp(name, c.name) != 0) continue;
    run(c);
    return 0;
  }
  std::fprintf(stderr, "%s is no case; --list names them\n", name);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s CASE | --list | --about\n", argv[0]);
    return 2;
  }
  if (std::strcmp(argv[1], "--about") == 0) return about();
  if (std::strcmp(argv[1], "--list") == 0) {
    for (counted_case const& c : cases) std::printf("%s\n", c.name);
    return 0;
  }
  try {
    return find_and_run(argv[1]);
  } catch (std::exception const& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
