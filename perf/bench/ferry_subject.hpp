// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// ferry, as an engine calls it.
#pragma once

#include "subject.hpp"

#include <ferry/exchange.hpp>

namespace ferry::bench {

/// Every slot goes through dispatch_send, dispatch_receive, combine_send and combine_receive; all
/// slots of a queue through one call before the next. A dispatch alone ends with release, and a
/// combine alone begins with a dispatch, both unmeasured.
class ferry_subject final : public subject {
 public:
  ferry_subject(workload const& work, exchange& ep, cpu_executor& threads);

  std::string name() const override { return "ferry"; }
  result<void> before(int iteration) override;
  result<void> run(int iteration) override;
  result<void> after(int iteration) override;
  result<void> check(int iteration) const override;
  std::vector<part_times> take_parts() override;

 private:
  enum part { send, receive, give_back, gather, num_parts };
  result<void> timed(part p, int iteration);
  result<void> call(part p, int iteration, int slot);

  workload const& work_;
  exchange& ep_;
  cpu_executor& threads_;
  std::vector<queue> queues_;
  std::vector<part_times> parts_;
};

}  // namespace ferry::bench
