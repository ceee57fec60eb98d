// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "group/rendezvous.hpp"

#include "base/fail.hpp"
#include "group/rendezvous_guest.hpp"
#include "group/rendezvous_host.hpp"

namespace ferry {

result<descriptor> open_rendezvous(endpoint const& where, deadline end) {
  FERRY_TRY(auto const addresses, resolve(where, end));
  auto opened = listen_at(addresses.front());
  // A name may stand for several addresses, of which this machine has some.
  for (std::size_t i = 1; !opened && i < addresses.size(); ++i) opened = listen_at(addresses[i]);
  return opened;
}

result<links> meet(rendezvous place, std::chrono::milliseconds timeout) {
  if (place.size == 1) return links(1);
  if (place.rank == 0) return rendezvous_host(std::move(place), timeout).run();
  return rendezvous_guest(std::move(place), timeout).run();
}

}  // namespace ferry
