// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "transport/libfabric/fabric_peer.hpp"

#include "base/fail.hpp"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <iterator>
#include <utility>

namespace ferry {
namespace {

/// Codes by which a provider says that nobody answers at the other end. Nobody cancels operations
/// here: tcp says so of those whose connection has ended.
bool says_nobody_answers(ssize_t code) {
  static constexpr int nobody[] = {FI_ECONNREFUSED, FI_ECONNRESET, FI_ECONNABORTED, FI_ECANCELED,
                                   FI_ENOTCONN,     FI_ESHUTDOWN,  FI_EHOSTUNREACH, FI_EHOSTDOWN,
                                   FI_ENETUNREACH,  FI_ENETDOWN,   FI_ETIMEDOUT,    EPIPE};
  return std::find(std::begin(nobody), std::end(nobody), static_cast<int>(code)) !=
         std::end(nobody);
}

}  // namespace

std::vector<std::byte> pack_endpoint(exposed_memory const& window,
                                     std::span<std::byte const> address) {
  std::vector<std::byte> made(sizeof window + address.size());
  std::memcpy(made.data(), &window, sizeof window);
  std::copy(address.begin(), address.end(), made.begin() + sizeof window);
  return made;
}

void fabric_peer::make(int rank, int of_rank, fabric_calls& endpoint,
                       libfabric_options const& options, local_memory const& staging) {
  rank_ = of_rank;
  peer_ = rank;
  endpoint_ = &endpoint;
  staging_ = staging;
  put_bytes_ = options.put_bytes;
  connect_timeout_ = options.connect_timeout;
  ring_.resize(options.queue_entries);
}

result<void> fabric_peer::connect(std::span<std::byte const> address) {
  FERRY_TRY(peer_address const theirs, unpack_address(peer_, address, rank_));
  exposed_memory there{};
  if (theirs.endpoint.size() < sizeof there)
    return fail(error_code::malformed_input, "an endpoint of {} bytes; at least {}",
                theirs.endpoint.size(), sizeof there);
  std::memcpy(&there, theirs.endpoint.data(), sizeof there);
  FERRY_TRY(to_, endpoint_->insert(std::span(theirs.endpoint).subspan(sizeof there)));
  window_ = theirs.window;
  there_ = there;
  for (; covered_ < posted_; ++covered_)
    if (fabric_operation& o = at(covered_); o.held) o.complete = true, o.held = false;
  stream_ = static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  sent_ = 0;
  failure_.reset();
  return {};
}

fabric_operation& fabric_peer::next(fabric_operation::kind what) {
  fabric_operation& o = at(posted_);
  o.what = what;
  o.held = o.complete = false;
  o.rank = peer_;
  return o;
}

void fabric_peer::fail_with(ssize_t code, std::string const& text) {
  if (failure_) return;
  failure_ = fail(says_nobody_answers(code) ? error_code::unreachable : error_code::transport,
                  "{} ended an operation to rank {} with: {}", endpoint_->name(), peer_, text);
}

bool fabric_peer::accepted(ssize_t code) {
  auto const now = std::chrono::steady_clock::now();
  bool const before = std::exchange(refused_, code == -FI_EAGAIN);
  if (code == 0) return true;
  if (!refused_)
    fail_with(-code, endpoint_->text_of(code));
  else if (!before)
    refused_since_ = now;
  else if (now - refused_since_ > connect_timeout_)
    fail_with(ETIMEDOUT, fmt::format("no connection for {} ms", connect_timeout_.count()));
  return false;
}

bool fabric_peer::put(std::size_t offset, std::byte const* from, std::size_t bytes) {
  if (bytes == 0) return true;
  fabric_operation& o = next(fabric_operation::kind::put);
  std::memcpy(place(posted_), from, bytes);
  if (!accepted(endpoint_->write(staging_, place(posted_), bytes, to_,
                                 {there_.address + offset, bytes, there_.key}, &o.of_provider)))
    return false;
  ++posted_;
  return true;
}

void fabric_peer::signal(std::size_t offset, std::uint64_t value, bool covers) {
  fabric_operation& o = next(fabric_operation::kind::signal);
  o.held = true;
  signal_message const m{stream_, 0, offset, value, static_cast<std::uint64_t>(rank_)};
  std::memcpy(place(posted_), &m, sizeof m);
  ++posted_;
  if (covers)
    advance();
  else
    send(posted_ - 1);
}

// Numbers are given in the order of sending, so nothing that is held makes the others wait.
bool fabric_peer::send(std::uint64_t number) {
  std::byte* const message = place(number);
  std::memcpy(message + offsetof(signal_message, number), &sent_, sizeof sent_);
  if (failure_ || !accepted(endpoint_->send(staging_, message, sizeof(signal_message), to_,
                                            &at(number).of_provider)))
    return false;
  at(number).held = false;
  ++sent_;
  return true;
}

bool fabric_peer::fetch(std::size_t offset, std::byte* into, std::size_t bytes,
                        local_memory const& memory, fabric_operation& as) {
  as.rank = peer_;
  return accepted(endpoint_->read(memory, into, bytes, to_, there_.address + offset, there_.key,
                                  &as.of_provider));
}

void fabric_peer::advance() {
  for (; covered_ < posted_; ++covered_) {
    fabric_operation const& o = at(covered_);
    if (o.what == fabric_operation::kind::put ? !o.complete : o.held && !send(covered_)) break;
  }
  while (done_ < covered_ && at(done_).complete) ++done_;
}

}  // namespace ferry
