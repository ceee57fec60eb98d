// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// A transport under test and its peers' in one process.
#pragma once

#include <ferry/transport/mapped_window.hpp>
#include <ferry/transport/transport.hpp>

#include "contract/carried_exchange.hpp"

#include <functional>
#include <memory>
#include <vector>

namespace ferry::test {

/// Makes one rank's transport, before it knows its peers.
using rank_transport = std::function<std::unique_ptr<transport>(int rank, int num_ranks)>;

/// A rank's transport together with those of its peers, all in one process, so that each window is
/// exposed by the transport that it belongs to.
class among_peers final : public transport {
 public:
  among_peers(int rank, std::vector<mapped_window> const& windows, rank_transport const& make)
      : rank_(static_cast<std::size_t>(rank)) {
    auto const ranks = static_cast<int>(windows.size());
    for (int r = 0; r < ranks; ++r) all_.push_back(make(r, ranks));
    std::vector<std::vector<std::byte>> addresses;
    for (std::size_t r = 0; r < windows.size(); ++r)
      addresses.push_back(all_[r]->expose(windows[r].bytes).value());
    for (auto& net : all_)
      for (int r = 0; r < ranks; ++r)
        net->connect(r, addresses[static_cast<std::size_t>(r)]).value();
  }
  abilities what_it_can() const override { return mine().what_it_can(); }
  result<std::vector<std::byte>> expose(std::span<std::byte> window) override {
    return mine().expose(window);
  }
  result<void> connect(int rank, std::span<std::byte const> address) override {
    return mine().connect(rank, address);
  }
  result<post> put(remote_region to, std::byte const* from) override {
    return mine().put(to, from);
  }
  result<post> signal(remote_region to, std::uint64_t value, strength promise) override {
    return mine().signal(to, value, promise);
  }
  result<post> settle(int rank) override { return mine().settle(rank); }
  result<bool> settled(int rank) override { return mine().settled(rank); }
  result<void> progress() override { return mine().progress(); }
  result<void> flush(int rank, std::chrono::milliseconds timeout) override {
    return mine().flush(rank, timeout);
  }
  result<void> fetch(remote_region from, std::byte* to,
                     std::chrono::milliseconds timeout) override {
    return mine().fetch(from, to, timeout);
  }
  int failed_rank() const override { return mine().failed_rank(); }

 private:
  transport& mine() const { return *all_[rank_]; }
  std::size_t rank_;
  std::vector<std::unique_ptr<transport>> all_;
};

inline transport_maker with_peers(rank_transport make) {
  return [make = std::move(make)](
             int rank, std::vector<mapped_window> const& windows) -> std::unique_ptr<transport> {
    return std::make_unique<among_peers>(rank, windows, make);
  };
}

}  // namespace ferry::test
