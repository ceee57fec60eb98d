// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/exec/emulated/lane_launch.hpp>

namespace ferry {
namespace {

lane_launch*& launch_of_this_thread() {
  static thread_local lane_launch* one = nullptr;
  return one;
}

}  // namespace

meeting_place::meeting_place(fibers& f, int size, std::string name)
    : fibers_(&f), name_(std::move(name)), left_(static_cast<std::size_t>(size)) {}

void meeting_place::meet(char const* call) {
  if (here_ == 0)
    call_ = call;
  else if (std::strcmp(call_, call) != 0)
    fibers_->part("lanes have parted: one lane of " + name_ + " calls " + call +
                  " while another calls " + call_);
  std::uint64_t const turn = turn_;
  if (++here_ == static_cast<int>(left_.size())) {
    here_ = 0;
    ++turn_;
    fibers_->happened();
  }
  while (turn_ == turn) fibers_->give_way(call, name_.c_str());
}

lane_launch::lane_launch(lane_grid grid, int lanes, std::uint64_t seed)
    : grid_(grid), lanes_(lanes), all_(seed) {
  for (int b = 0; b < grid.blocks; ++b) {
    std::string const name = "block " + std::to_string(b);
    blocks_.emplace_back(all_, grid.teams * lanes, name);
    for (int t = 0; t < grid.teams; ++t)
      teams_.emplace_back(all_, lanes, "team " + std::to_string(t) + " of " + name);
  }
  stores_.resize(teams_.size());
}

lane_launch& lane_launch::current() {
  return *launch_of_this_thread();
}

result<void> lane_launch::run(std::function<void()> const& body) {
  launch_of_this_thread() = this;
  result<void> outcome = all_.run(grid_.blocks * grid_.teams * lanes_, [&](int) { body(); });
  launch_of_this_thread() = nullptr;
  for (auto& stores : stores_) make(stores);
  return outcome;
}

void lane_launch::store_later(void* to, void const* from, std::size_t bytes) {
  store& s = stores_[number()].emplace_back();
  s.to = to;
  s.size = bytes;
  std::memcpy(s.bytes, from, bytes);
}

void lane_launch::drain_stores() {
  make(stores_[number()]);
}

// The latest first: no order is promised, and a later store to the same place does not happen.
void lane_launch::make(std::vector<store>& stores) {
  for (auto s = stores.rbegin(); s != stores.rend(); ++s) std::memcpy(s->to, s->bytes, s->size);
  stores.clear();
}

}  // namespace ferry
