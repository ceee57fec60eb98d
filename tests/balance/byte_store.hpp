// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// A store whose experts are bytes that tell who they are.
#pragma once

#include <ferry/balance/expert_store.hpp>
#include <ferry/balance/placement.hpp>

#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ferry::oracle {

class byte_store : public expert_store {
 public:
  using weights = std::vector<std::byte>;

  byte_store(placement const& where, int rank, int spares, std::size_t bytes)
      : bytes_(bytes), spares_(static_cast<std::size_t>(spares)) {
    for (int l = 0; l < where.num_layers; ++l) {
      layers_.emplace_back();
      for (int s = where.first_slot(rank); s < where.first_slot(rank + 1); ++s)
        layers_.back().push_back(make(l, where.layer(l)[static_cast<std::size_t>(s)]));
    }
  }

  /// Called at the start of each call, with its name.
  std::function<void(std::string const&)> on_call;
  /// The next expert that is laid aside loses a bit.
  bool spoil_next = false;
  bool fail_swap = false;

  std::size_t expert_bytes() const override { return bytes_; }
  int spare_slots() const override { return static_cast<int>(spares_.size()); }
  result<void> read(own_slot from, std::size_t offset, std::span<std::byte> to) override {
    called("read");
    return copy(at(from), offset, to);
  }
  result<void> stage(int spare, own_slot where, std::span<std::byte const> from) override {
    called("stage");
    staged& s = spares_.at(static_cast<std::size_t>(spare));
    s = {true, where, {from.begin(), from.end()}};
    if (std::exchange(spoil_next, false)) s.expert.back() ^= std::byte{1};
    return {};
  }
  result<void> read_staged(int spare, std::size_t offset, std::span<std::byte> to) override {
    called("read_staged");
    return copy(spares_.at(static_cast<std::size_t>(spare)).expert, offset, to);
  }
  result<void> swap() override {
    called("swap");
    if (fail_swap) return error{error_code::device, "the weights are lost"};
    for (staged& s : spares_)
      if (std::exchange(s.used, false)) at(s.where) = std::move(s.expert);
    return {};
  }
  void discard() override {
    for (staged& s : spares_) s.used = false;
  }

  /// The expert in a slot, -1 where its bytes are not all right.
  int holds(int layer, int slot) {
    weights const& found = at({layer, slot});
    std::int32_t expert = 0;
    std::memcpy(&expert, found.data(), sizeof expert);
    return found == make(layer, expert) ? expert : -1;
  }
  /// Whether all slots hold what `where` says.
  bool is(placement const& where, int rank) {
    for (int l = 0; l < where.num_layers; ++l)
      for (int s = where.first_slot(rank); s < where.first_slot(rank + 1); ++s)
        if (holds(l, s - where.first_slot(rank)) != where.layer(l)[static_cast<std::size_t>(s)])
          return false;
    return true;
  }

 private:
  struct staged {
    bool used = false;
    own_slot where = {};
    weights expert = {};
  };

  weights make(int layer, std::int32_t expert) const {
    weights w(bytes_);
    std::minstd_rand from(static_cast<unsigned>(layer * 1000 + expert + 1));
    for (std::byte& b : w) b = static_cast<std::byte>(from() >> 8);
    std::memcpy(w.data(), &expert, sizeof expert);
    return w;
  }
  weights& at(own_slot s) {
    return layers_.at(static_cast<std::size_t>(s.layer)).at(static_cast<std::size_t>(s.slot));
  }
  static result<void> copy(weights const& from, std::size_t offset, std::span<std::byte> to) {
    if (offset + to.size() > from.size())
      return error{error_code::internal, "bytes beyond an expert"};
    std::memcpy(to.data(), from.data() + offset, to.size());
    return {};
  }
  void called(char const* what) {
    if (on_call) on_call(what);
  }

  std::size_t bytes_;
  std::vector<std::vector<weights>> layers_;
  std::vector<staged> spares_;
};

}  // namespace ferry::oracle
