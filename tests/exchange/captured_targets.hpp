// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The queues on which steps are captured: plain ones and streams of the CPU, and emulated devices.
#pragma once

#include "data/sanitized.hpp"
#include "exchange/captured_step.hpp"
#include "exchange/random_world.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>

namespace ferry::oracle {

struct target {
  char const* name;
  char const* device;
  bool stream;
  int round_tokens;
  int replays;

  int replays_here() const { return test::is_sanitized ? std::min(replays, 300) : replays; }
};

inline queue queue_of(target const& t, device const& where) {
  return where.kind() == device_kind::cpu && t.stream ? queue::cpu_stream().value()
                                                      : queue::on(where).value();
}

inline std::vector<step> draw_steps(world const& w, int count, std::uint64_t seed) {
  dice from(seed);
  std::vector<step> made;
  for (int i = 0; i < count; ++i) made.push_back(random_step(w, from));
  return made;
}

inline void PrintTo(target const& t, std::ostream* to) {
  *to << t.name;
}

class on_target : public testing::TestWithParam<target> {
  void SetUp() override {
    // Fibers switch stacks in a way that sanitizers do not follow.
    if (test::is_sanitized &&
        device::open(GetParam().device).value().kind() == device_kind::emulated)
      GTEST_SKIP() << "emulated devices do not run under this sanitizer";
  }
};

/// One rank alone, with an exchange of two slots.
struct alone {
  device where;
  world w = exact_world(1);
  group ranks = join(threads(1).rank(0)).value();
  exchange ep = make_exchange(ranks, where, w.options).value();
  queue q;
  captured_step s{w, 0, ep, 0, where, w.options.max_tokens};

  explicit alone(target const& t) : where(device::open(t.device).value()), q(queue_of(t, where)) {}
  queue another(target const& t) const { return queue_of(t, where); }
  /// Whether the slot works as if nothing had been.
  void expect_usable() {
    std::vector<step> const drawn = draw_steps(w, 1, 3);
    s.bring(drawn[0]);
    s.put(q).value();
    ep.microbatch(0).wait(q).value();
    complaints wrong;
    s.check(drawn[0], 0, wrong);
    EXPECT_TRUE(wrong.none()) << wrong.text();
  }
};

}  // namespace ferry::oracle
