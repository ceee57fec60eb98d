// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// How an exchange gets to its peers' windows, and takes its leave of those on a network or in other
// processes' devices.

#include "base/fail.hpp"
#include "exchange/exchange_state.hpp"
#include "exchange/open_rails.hpp"
#include "group/agreement.hpp"
#include "group/packed.hpp"

#include <atomic>
#include <exception>
#include <thread>

namespace ferry {
namespace {

constexpr std::size_t staging_bytes = std::size_t{4} << 20;  // longer puts go out in parts

/// A rank that has failed keeps its window readable for so long: those who wait for it look at its
/// record every 50 ms (R9).
constexpr std::chrono::milliseconds time_to_be_asked{300};

/// The word by which a rank gives credit for ever: it will not read its windows any more.
constexpr std::uint64_t last_done = std::uint64_t{1} << 62;

std::vector<int> peers_on_network(exchange_core const& core) {
  std::vector<int> peers;
  for (int r = 0; r < core.shape.ranks; ++r)
    if (core.is_on_network(r)) peers.push_back(r);
  return peers;
}

// Where the group plays several nodes, ranks of one node stay mapped; else all go this way.
result<void> start_loopback(exchange_core& core) {
  std::size_t const asleep = core.window.offset(window_field::asleep);
  std::vector<mapped_window> through_network;
  bool const one_node = peers_on_network(core).empty();
  for (int r = 0; r < core.shape.ranks; ++r) {
    auto const i = static_cast<std::size_t>(r);
    bool const far = core.is_on_network(r) && !core.windows.elsewhere.empty();
    window const& w = far ? core.windows.elsewhere[i] : core.windows.windows[i];
    if (!w.data())
      return fail(error_code::unsupported,
                  "rank {} cannot be mapped ({}): via network, the loopback network reaches only "
                  "ranks that can",
                  r, core.windows.why[static_cast<std::size_t>(r)]);
    through_network.push_back({w.bytes(), asleep});
    if (one_node && r != core.shape.rank) core.mapped[i] = nullptr;
  }
  try {
    core.out = std::make_unique<outbox>(
        make_loopback_transport(core.shape.rank, std::move(through_network), core.options.faults),
        core.shape.ranks, staging_bytes, core.waits(0).timeout);
  } catch (std::exception const& e) {
    return fail(error_code::out_of_memory, "cannot start the loopback network: {}", e.what());
  }
  return {};
}

struct exposed {
  std::unique_ptr<transport> net;
  bytes address;
};
result<exposed> expose(exchange_core const& core, std::vector<int> const& peers) {
  if (peers.empty()) return exposed{};
  auto const because = [&](error const& why) {
    bool const rdma = core.options.carrier == carrier::verbs;
    return fail(why.code, "rank {} cannot be mapped ({}), and not be reached {}: {}", peers.front(),
                core.windows.why[static_cast<std::size_t>(peers.front())],
                rdma ? "by RDMA" : "through libfabric", why.message);
  };
  auto net = open_rails(core.ranks, core.options, peers);
  if (!net) return because(net.error());
  exposed made;
  made.net = *std::move(net);
  window const& own = core.windows.windows[static_cast<std::size_t>(core.shape.rank)];
  FERRY_TRY(made.address, made.net->expose(own.bytes()));
  return made;
}

/// Every rank's address; empty for those that need none.
result<std::vector<bytes>> gather_addresses(group const& ranks, result<exposed> const& mine) {
  packer to;
  to.add_outcome(mine ? result<void>{} : result<void>{mine.error()});
  if (mine) to.add_bytes(mine->address);
  FERRY_TRY(auto const all, ranks.all_gather(to.packed()));
  if (!mine) return mine.error();
  std::vector<bytes> addresses;
  for (int r = 0; r < ranks.size(); ++r) {
    unpacker from{all[static_cast<std::size_t>(r)]};
    if (auto const outcome = from.take_outcome(); !outcome) return told_by(r, outcome.error());
    addresses.push_back(from.take_sized_bytes());
    if (!from.complete())
      return fail(error_code::malformed_input, "rank {} told its address in {} bytes", r,
                  all[static_cast<std::size_t>(r)].size());
  }
  return addresses;
}

result<void> connect_all(transport* net, std::vector<int> const& peers,
                         std::vector<bytes> const& addresses) {
  for (int const r : peers) FERRY_CHECK(net->connect(r, addresses[static_cast<std::size_t>(r)]));
  return {};
}

// A barrier is the end of it: nobody posts before all are connected.
result<void> start_network(exchange_core& core) {
  std::vector<int> const peers = peers_on_network(core);
  result<exposed> mine = expose(core, peers);
  FERRY_TRY(auto const addresses, gather_addresses(core.ranks, mine));
  FERRY_CHECK(core.ranks.agree(connect_all(mine->net.get(), peers, addresses)));
  if (peers.empty()) return {};
  core.out = std::make_unique<outbox>(std::move(mine->net), core.shape.ranks, staging_bytes,
                                      core.waits(0).timeout);
  core.cannot_wake.assign(static_cast<std::size_t>(core.shape.ranks), false);
  // Words over libfabric are stored by a thread of this process, which wakes.
  for (int const r : peers)
    core.cannot_wake[static_cast<std::size_t>(r)] = core.options.carrier == carrier::verbs;
  return {};
}

std::size_t done_offset(exchange_core const& core, int slot, int of_rank) {
  return core.window.offset(window_field::flags, static_cast<std::size_t>(slot)) +
         lay_out_flags(core.shape).offset(flag_field::back, static_cast<std::size_t>(of_rank));
}

bool has_finished(exchange_core const& core, int rank) {
  std::byte* const own = core.readable[static_cast<std::size_t>(core.shape.rank)];
  for (int s = 0; s < core.options.num_microbatches; ++s) {
    auto* const word = reinterpret_cast<std::uint64_t*>(own + done_offset(core, s, rank));
    if (std::atomic_ref(*word).load(std::memory_order_acquire) != last_done) return false;
  }
  return true;
}

// A peer's process may still be storing the end of the last step into this rank's memory, which
// goes with the exchange.
void take_leave_of_devices(exchange_core& core) {
  if (!core.on_device->maps_other_processes()) return;
  if (!core.ranks.usable()) {
    std::this_thread::sleep_for(time_to_be_asked);
    return;
  }
  core.on_device->take_leave(
      core.ranks, [&](int r) { return done_offset(core, 0, r); }, last_done, core.timeout());
}

}  // namespace

result<void> reach_peers(exchange_core& core) {
  for (window const& w : core.windows.windows) {
    core.readable.push_back(w.data());
    core.mapped.push_back(w.data());
  }
  if (core.options.via == reach::network) return core.ranks.agree(start_loopback(core));
  return start_network(core);
}

// What a peer posted last may still be on its way here, or its acknowledgement on the way back,
// when this rank has all that it needs: its queues must not go before the peer is done as well.
void take_leave(exchange_core& core) {
  if (core.on_device) return take_leave_of_devices(core);
  if (!core.out || core.cannot_wake.empty()) return;
  if (!core.ranks.usable()) {
    std::this_thread::sleep_for(time_to_be_asked);
    return;
  }
  auto const end = std::chrono::steady_clock::now() + core.timeout();
  std::vector<int> left = peers_on_network(core);
  for (int const r : left)
    for (int s = 0; s < core.options.num_microbatches; ++s)
      core.out->signal(r, done_offset(core, s, core.shape.rank), last_done, strength::all_earlier);
  while (!left.empty() && core.ranks.usable() && !core.out->first_error() &&
         std::chrono::steady_clock::now() < end) {
    std::erase_if(
        left, [&](int r) { return has_finished(core, r) || core.ranks.look(r) != presence::here; });
    if (!left.empty()) std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
}

}  // namespace ferry
