// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "base/fail.hpp"

#include <ferry/transport/libfabric.hpp>

namespace ferry {

result<void> validate(libfabric_options const& o) {
  if (o.provider.empty())
    return fail(error_code::invalid_argument, "provider is empty; \"tcp\" is one");
  if (o.queue_entries < 4 || o.queue_entries > 32768)
    return fail(error_code::invalid_argument, "queue_entries is {}; 4 to 32768 is possible",
                o.queue_entries);
  if (o.put_bytes < 64 || o.put_bytes > std::size_t{1} << 23)
    return fail(error_code::invalid_argument, "put_bytes is {}; 64 to {} is possible", o.put_bytes,
                std::size_t{1} << 23);
  constexpr std::chrono::milliseconds day{86'400'000};
  if (o.connect_timeout < std::chrono::milliseconds{1} || o.connect_timeout > day)
    return fail(error_code::invalid_argument, "connect_timeout is {} ms; 1 to {} is possible",
                o.connect_timeout.count(), day.count());
  return {};
}

}  // namespace ferry
