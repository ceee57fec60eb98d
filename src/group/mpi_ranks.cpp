// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/mpi.hpp>

#include "base/fail.hpp"
#include "group/machine.hpp"
#include "group/rendezvous.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace ferry {
namespace {

/// Between two questions whether MPI is done.
constexpr std::chrono::milliseconds mpi_pause{1};

/// Where a rank runs: the loopback interface belongs to a network namespace of a machine.
struct place_of_rank {
  machine_id machine{};
  std::uint64_t network_namespace = 0;
  bool operator==(place_of_rank const&) const = default;
};

/// What rank 0 tells all others.
struct invitation {
  std::int32_t failed_with = -1;  ///< an error_code, or -1
  std::uint32_t port = 0;
  secret job{};
  char text[256] = {};  ///< rank 0's address, or why it has none

  void set_text(std::string const& from) {
    auto const count = std::min(from.size(), sizeof text - 1);
    std::memcpy(text, from.data(), count);
    text[count] = 0;
  }
};

result<void> check(int code, char const* what) {
  if (code == MPI_SUCCESS) return {};
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  return fail(error_code::transport, "{}: {}", what, text);
}

/// Waits for a collective of MPI, which knows no deadline. What it reads and writes must outlive a
/// wait that was given up, so then it stays for ever: MPI cannot cancel a collective.
template <class Memory>
result<void> finish(MPI_Request request, std::unique_ptr<Memory>& memory, deadline end,
                    char const* what) {
  for (;;) {
    int done = 0;
    auto const outcome = check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), what);
    if (outcome && done) return {};
    if (!outcome || passed(end)) {
      static_cast<void>(memory.release());
      FERRY_CHECK(outcome);
      return fail(error_code::timeout, "{}: not all ranks of the communicator came", what);
    }
    std::this_thread::sleep_for(mpi_pause);
  }
}

result<void> check_usable(MPI_Comm communicator) {
  int initialised = 0;
  int finalised = 0;
  MPI_Initialized(&initialised);
  MPI_Finalized(&finalised);
  if (!initialised || finalised)
    return fail(error_code::invalid_state, "mpi is {}",
                finalised ? "finalised" : "not initialised");
  int level = MPI_THREAD_SINGLE;
  int main_thread = 0;
  FERRY_CHECK(check(MPI_Query_thread(&level), "MPI_Query_thread"));
  FERRY_CHECK(check(MPI_Is_thread_main(&main_thread), "MPI_Is_thread_main"));
  if (!main_thread && level < MPI_THREAD_SERIALIZED)
    return fail(error_code::invalid_state,
                "this is not the thread that initialised mpi, whose thread level is {}", level);
  if (communicator == MPI_COMM_NULL)
    return fail(error_code::invalid_argument, "the communicator is MPI_COMM_NULL");
  int between_groups = 0;
  FERRY_CHECK(check(MPI_Comm_test_inter(communicator, &between_groups), "MPI_Comm_test_inter"));
  if (between_groups)
    return fail(error_code::invalid_argument, "the communicator is between two groups");
  return {};
}

/// Whether all ranks share one loopback interface.
result<bool> all_on_one_machine(MPI_Comm communicator, int size, deadline end) {
  struct exchanged {
    place_of_rank mine;
    std::vector<place_of_rank> all;
  };
  auto memory = std::make_unique<exchanged>();
  FERRY_TRY(memory->mine.machine, this_machine());
  memory->mine.network_namespace = network_namespace();
  memory->all.resize(static_cast<std::size_t>(size));
  MPI_Request request = MPI_REQUEST_NULL;
  FERRY_CHECK(check(MPI_Iallgather(&memory->mine, sizeof memory->mine, MPI_BYTE, memory->all.data(),
                                   sizeof memory->mine, MPI_BYTE, communicator, &request),
                    "MPI_Iallgather"));
  FERRY_CHECK(finish(request, memory, end, "MPI_Iallgather"));
  return std::ranges::all_of(memory->all,
                             [&](place_of_rank const& p) { return p == memory->mine; });
}

/// Rank 0 opens its port first, so nobody is told of one that another program may take.
result<void> invite(rendezvous& place, bool one_machine, deadline end) {
  place.where.host = "127.0.0.1";
  if (!one_machine) {
    FERRY_TRY(place.where.host, address_for_others());
  }
  FERRY_TRY(place.job, fresh_secret());
  FERRY_TRY(place.listener, open_rendezvous(place.where, end));
  FERRY_TRY(auto const listening, local_address(place.listener.number()));
  place.where.port = listening.port();
  return {};
}

result<void> tell(MPI_Comm communicator, rendezvous& place, result<void> const& outcome,
                  deadline end) {
  auto memory = std::make_unique<invitation>();
  memory->port = place.where.port;
  memory->job = place.job;
  memory->set_text(outcome ? place.where.host : outcome.error().message);
  if (!outcome) memory->failed_with = static_cast<std::int32_t>(outcome.error().code);
  MPI_Request request = MPI_REQUEST_NULL;
  FERRY_CHECK(check(MPI_Ibcast(memory.get(), sizeof *memory, MPI_BYTE, 0, communicator, &request),
                    "MPI_Ibcast"));
  FERRY_CHECK(finish(request, memory, end, "MPI_Ibcast"));
  if (place.rank == 0) return outcome;
  if (memory->failed_with >= 0)
    return fail(static_cast<error_code>(memory->failed_with), "on rank 0: {}", memory->text);
  place.where = {memory->text, static_cast<std::uint16_t>(memory->port)};
  place.job = memory->job;
  return {};
}

result<std::unique_ptr<bootstrap>> meet_by_mpi(MPI_Comm communicator,
                                               group_options const& options) {
  auto const end = after(options.timeout);
  FERRY_CHECK(check_usable(communicator));
  rendezvous place;
  FERRY_CHECK(check(MPI_Comm_rank(communicator, &place.rank), "MPI_Comm_rank"));
  FERRY_CHECK(check(MPI_Comm_size(communicator, &place.size), "MPI_Comm_size"));
  int const rank = place.rank;
  if (place.size > 1) {
    FERRY_TRY(bool const one_machine, all_on_one_machine(communicator, place.size, end));
    auto const invited = rank == 0 ? invite(place, one_machine, end) : result<void>{};
    FERRY_CHECK(tell(communicator, place, invited, end));
  }
  FERRY_TRY(auto to_peers,
            meet(std::move(place), std::max(until(end), std::chrono::milliseconds{1})));
  return bootstrap_over(rank, std::move(to_peers));
}

}  // namespace

bootstrap_factory mpi(MPI_Comm communicator) {
  return
      [communicator](group_options const& options) { return meet_by_mpi(communicator, options); };
}

}  // namespace ferry
