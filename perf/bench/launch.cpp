// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "launch.hpp"

#ifdef FERRY_BENCH_MPI
#include "mpi_subject.hpp"

#include <ferry/mpi.hpp>
#endif

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace ferry::bench {

std::optional<int> ranks_of_mpirun() {
  for (auto const* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"})
    if (char const* const text = std::getenv(name)) {
      int ranks = 0;
      auto const [stop, trouble] = std::from_chars(text, text + std::strlen(text), ranks);
      if (trouble == std::errc() && ranks > 0) return ranks;
    }
  return std::nullopt;
}

namespace {

#ifdef FERRY_BENCH_MPI

result<void> add_mpi(workload const& work, std::vector<std::unique_ptr<subject>>& programs) {
  for (packing how : {packing::per_rank, packing::per_choice}) {
    FERRY_TRY(auto program, mpi_subject::make(MPI_COMM_WORLD, work, how));
    programs.push_back(std::move(program));
  }
  return {};
}

result<void> on_rank_of_mpi(settings const& s,
                            std::function<result<void>(bench_rank)> const& body) {
  int provided = 0;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS)
    return error{error_code::transport, "MPI_Init_thread failed"};
  FERRY_TRY(group ranks, join(mpi(MPI_COMM_WORLD), {.timeout = s.timeout}));
  group exchanging = ranks;
  if (s.ranks_per_node) {
    FERRY_TRY(exchanging, join(mpi(MPI_COMM_WORLD),
                               {.timeout = s.timeout, .ranks_per_node = s.ranks_per_node}));
  }
  FERRY_CHECK(body({ranks, exchanging, nullptr, add_mpi, "mpirun"}));
  // Not after a failure: MPI would wait for ranks that are gone.
  MPI_Finalize();
  return {};
}

#else

result<void> on_rank_of_mpi(settings const&, std::function<result<void>(bench_rank)> const&) {
  return error{error_code::unsupported,
               "started by mpirun, but this build has no MPI; use --ranks N instead"};
}

#endif

result<void> on_threads(settings const& s, int size,
                        std::function<result<void>(bench_rank)> const& body) {
  thread_ranks const meeting(size), of_nodes(size);
  std::vector<result<void>> outcomes(static_cast<std::size_t>(size));
  auto const run = [&](int rank) -> result<void> {
    FERRY_TRY(group ranks, join(meeting.rank(rank), {.timeout = s.timeout}));
    group exchanging = ranks;
    if (s.ranks_per_node) {
      FERRY_TRY(exchanging, join(of_nodes.rank(rank),
                                 {.timeout = s.timeout, .ranks_per_node = s.ranks_per_node}));
    }
    return body({ranks, exchanging, nullptr, {}, "threads"});
  };
  std::vector<std::thread> threads;
  for (int r = 1; r < size; ++r)
    threads.emplace_back([&, r] { outcomes[static_cast<std::size_t>(r)] = run(r); });
  outcomes[0] = run(0);
  for (std::thread& t : threads) t.join();
  for (result<void> const& outcome : outcomes) FERRY_CHECK(outcome);
  return {};
}

}  // namespace

result<void> on_all_ranks(settings const& s, std::function<result<void>(bench_rank)> const& body) {
  if (ranks_of_mpirun()) return on_rank_of_mpi(s, body);
  return on_threads(s, s.ranks.value_or(2), body);
}

}  // namespace ferry::bench
