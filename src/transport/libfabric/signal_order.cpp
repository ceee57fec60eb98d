// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "transport/libfabric/signal_order.hpp"

namespace ferry {

std::vector<signal_message> signal_order::take(signal_message const& came) {
  if (came.stream < stream_) return {};
  if (came.stream > stream_) {
    stream_ = came.stream;
    next_ = 0;
    early_.clear();
  }
  // Nobody is so far ahead: no queue is so long. Old ones are far ahead, too, once around.
  if (came.number - next_ > most_ahead) return {};
  early_.emplace(came.number, came);
  std::vector<signal_message> due;
  for (auto it = early_.begin(); it != early_.end() && it->first <= next_; it = early_.erase(it)) {
    if (it->first < next_) continue;
    due.push_back(it->second);
    ++next_;
  }
  return due;
}

}  // namespace ferry
