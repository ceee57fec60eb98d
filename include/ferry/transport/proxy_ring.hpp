// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// A ring of requests that kernels fill and a host thread posts: the kernels' half.
///
/// A request passes three hands. A lane takes its number, waits until that place of the ring is
/// free, fills it and marks it with the number. The host thread takes marked requests in the order
/// of their numbers. Once the transport has read a request's bytes, its place is free again.
#pragma once

#include <ferry/base/platform.hpp>
#include <ferry/transport/device_verbs/nic_access.hpp>

#include <cstddef>
#include <cstdint>

namespace ferry {

/// One request, in memory that host and device share. Filled by one lane, read by the host.
struct alignas(64) proxy_request {
  enum what : std::uint32_t { put, signal };
  std::uint32_t marked;  ///< the request's number and 1, stored last
  std::uint32_t kind;
  std::int32_t rank;
  std::uint32_t bytes;  ///< of a put; they lie in the staging place of the request
  std::uint64_t offset;
  std::uint64_t word;  ///< of a signal
};
static_assert(sizeof(proxy_request) == 64, "requests that two lanes fill share no line");

/// What host and kernels tell each other. Each word has one writer, on a line of its own.
struct proxy_words {
  alignas(64) std::uint32_t taken;   ///< kernels: numbers given out; in memory of the device
  alignas(64) std::uint32_t free;    ///< host: the requests before this one have free places
  alignas(64) std::uint32_t failed;  ///< either side, once: nothing is filled or posted any more
};

/// The ring as kernels hold it, by value.
/// Lifetime the memory is the proxy's
struct proxy_ring {
  proxy_request* requests = nullptr;
  std::byte* staging = nullptr;
  std::uint32_t* taken = nullptr;
  std::uint32_t* free = nullptr;
  std::uint32_t* failed = nullptr;
  std::uint32_t num_requests = 0;  ///< a power of two
  std::uint32_t put_bytes = 0;     ///< staging bytes of each request

  FERRY_FN proxy_request& at(std::uint32_t number) const {
    return requests[number & (num_requests - 1)];
  }
  FERRY_FN std::byte* place_of(std::uint32_t number) const {
    return staging + std::size_t{number & (num_requests - 1)} * put_bytes;
  }

  /// L  Takes the next number and waits for its place. False when the ring failed or had no room
  /// for too long: a number that was taken and never marked ends the ring.
  template <device_verbs::nic_access Access, device_verbs::patience Patience>
  FERRY_FN bool take(Access const& a, Patience& how_long, std::uint32_t& number) const {
    if (a.load(failed) != 0) return false;
    number = a.fetch_add(taken, 1);
    while (number - a.load(free) >= num_requests) {
      if (a.load(failed) != 0) return false;
      if (!how_long.left()) {
        a.store(failed, 1u);
        return false;
      }
      a.pause();
    }
    return true;
  }

  /// L  Hands a filled request over, with everything that this lane stored, or saw stored, before.
  template <device_verbs::nic_access Access>
  FERRY_FN void mark(Access const& a, std::uint32_t number) const {
    a.store(&at(number).marked, number + 1);
  }
};

}  // namespace ferry
