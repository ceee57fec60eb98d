// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "base/fail.hpp"

#include <ferry/transport/verbs.hpp>

#include <bit>

namespace ferry {

result<void> validate(verbs_options const& o) {
  auto const within = [](char const* name, long value, long low, long high) -> result<void> {
    if (value < low || value > high)
      return fail(error_code::invalid_argument, "{} is {}; {} to {} is possible", name, value, low,
                  high);
    return {};
  };
  FERRY_CHECK(within("port", o.port, 1, 255));
  FERRY_CHECK(within("gid_index", o.gid_index, -1, 255));
  FERRY_CHECK(within("service_level", o.service_level, 0, 15));
  FERRY_CHECK(within("traffic_class", o.traffic_class, 0, 255));
  FERRY_CHECK(within("timeout", o.timeout, 1, 31));
  FERRY_CHECK(within("retries", o.retries, 0, 6));
  FERRY_CHECK(within("queue_entries", o.queue_entries, 4, 32768));
  FERRY_CHECK(within("put_bytes", static_cast<long>(o.put_bytes), 64, 1L << 23));
  if (o.mtu != 0 && (o.mtu < 256 || o.mtu > 4096 || !std::has_single_bit(unsigned(o.mtu))))
    return fail(error_code::invalid_argument,
                "mtu is {}; it must be 0, or a power of two from 256 to 4096", o.mtu);
  return {};
}

}  // namespace ferry
