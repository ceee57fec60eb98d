// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Packed weights that all ranks hold alike, kept once per machine.
///
/// Ranks that share cores compute the same layer at about the same time. With one copy its weights
/// are in the caches for all of them; with a copy each, every rank fetches its own from memory.
#pragma once

#include <ferry/base/result.hpp>
#include <ferry/group.hpp>
#include <ferry/memory/window.hpp>

#include <dnnl.hpp>

#include <cstddef>
#include <memory>
#include <vector>

namespace ferry::deepseek {

/// Weights as the product library has packed them; `where` holds what they lie in, if not they.
struct packed_weights {
  dnnl::memory memory;
  window where;
};

class weight_pool {
 public:
  /// Order    the same on all ranks
  void add(std::shared_ptr<packed_weights> weights);

  /// Moves the weights into a window of one rank per machine, and gives up the own copies. Every
  /// rank compares first: what differs from its own it does not take, and a rank whose weights are
  /// packed to another size shares with its like. Collective.
  /// Order    before any product is computed by another thread
  /// Errors   those of share_window
  result<void> share(group const& ranks);

  std::size_t bytes() const { return bytes_; }
  /// Where each of the weights lies now.
  std::vector<void const*> places() const;

 private:
  void copy_to(window const& w) const;
  void take_from(window const& w);

  std::vector<std::shared_ptr<packed_weights>> all_;
  std::size_t bytes_ = 0;  ///< in a window
};

}  // namespace ferry::deepseek
