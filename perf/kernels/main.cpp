// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <benchmark/benchmark.h>

#include <cstdlib>

int main(int argc, char** argv) {
  // Everything here is of one thread; read when OpenMP starts.
  setenv("OMP_NUM_THREADS", "1", 0);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
