// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "transport/verbs/verbs_queue.hpp"

#include "base/fail.hpp"
#include "transport/verbs/pair_connection.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

namespace ferry {
namespace {

/// How long entries may wait without any of them ending before the queue is nudged.
constexpr std::chrono::milliseconds patience_with_queue{20};

}  // namespace

verbs_queue::~verbs_queue() {
  if (pair_) device_->library().destroy_qp(pair_);
  if (completions_) device_->library().destroy_cq(completions_);
}

result<void> verbs_queue::make(verbs_device& device, verbs_options const& options,
                               std::span<std::byte> staging, std::uint32_t staging_key) {
  device_ = &device;
  options_ = options;
  staging_ = staging;
  staging_key_ = staging_key;
  entries_ = options.queue_entries;
  put_bytes_ = options.put_bytes;
  auto const entries = static_cast<int>(options.queue_entries);
  completions_ = device.library().create_cq(device.context(), entries, nullptr, nullptr, 0);
  if (!completions_)
    return fail_errno(error_code::transport,
                      fmt::format("{} has no completion queue of {}", device.name(), entries),
                      errno);
  ibv_qp_init_attr about{};
  about.send_cq = about.recv_cq = completions_;
  about.qp_type = IBV_QPT_RC;
  about.cap = {.max_send_wr = options.queue_entries,
               .max_recv_wr = 1,
               .max_send_sge = 1,
               .max_recv_sge = 1,
               .max_inline_data = 8};
  pair_ = device.library().create_qp(device.domain(), &about);
  if (!pair_)
    return fail_errno(error_code::transport,
                      fmt::format("{} has no queue pair of {}", device.name(), entries), errno);
  inline_bytes_ = about.cap.max_inline_data;
  return {};
}

std::vector<std::byte> verbs_queue::endpoint() const {
  return endpoint_of(*device_, options_, *pair_);
}

result<void> verbs_queue::connect(std::span<std::byte const> endpoint, peer_window const& w) {
  FERRY_TRY(pair_endpoint const theirs, read_endpoint(endpoint));
  connected = false;
  FERRY_CHECK(reset_pair(*device_, pair_));
  FERRY_CHECK(forget_completions());
  FERRY_CHECK(connect_pair(*device_, options_, pair_, theirs));
  window = w;
  // An atomic is carried out by the NIC that owns the word, and asked for by this one.
  adds_ = device_->has_atomics() && theirs.has_atomics == 1;
  connected = true;
  done_ = posted_;
  failure_.reset();
  words_.clear();
  return {};
}

// What a queue pair completed before it was made new belongs to entries that nobody knows any more.
result<void> verbs_queue::forget_completions() {
  ibv_wc old[16];
  for (;;) {
    int const count = ibv_poll_cq(completions_, 16, old);
    if (count < 0)
      return fail(error_code::transport, "{}'s completion queue broke", device_->name());
    if (count == 0) return {};
  }
}

ibv_sge verbs_queue::piece_of(std::byte* at, std::uint32_t bytes) const {
  return {reinterpret_cast<std::uint64_t>(at), bytes, staging_key_};
}

result<void> verbs_queue::post(ibv_send_wr& work) {
  work.wr_id = posted_;
  if (posted_ == done_) moved_ = std::chrono::steady_clock::now();
  ibv_send_wr* bad = nullptr;
  if (int const e = ibv_post_send(pair_, &work, &bad))
    return fail_errno(error_code::transport, device_->name() + " does not take an operation", e);
  ++posted_;
  return {};
}

result<void> verbs_queue::put(std::uint64_t to, std::byte const* from, std::size_t bytes) {
  std::byte* const at = place();
  std::memcpy(at, from, bytes);
  ibv_sge piece = piece_of(at, static_cast<std::uint32_t>(bytes));
  ibv_send_wr w{};
  w.opcode = IBV_WR_RDMA_WRITE;
  w.send_flags = IBV_SEND_SIGNALED;
  w.sg_list = &piece;
  w.num_sge = bytes ? 1 : 0;
  w.wr.rdma = {.remote_addr = to, .rkey = window.key};
  return post(w);
}

result<void> verbs_queue::signal(std::uint64_t to, std::uint64_t value, bool covers) {
  // The word has no other writer, so what it holds is known here.
  std::uint64_t const before = std::exchange(words_[to], value);
  if (covers) {
    ibv_sge piece = piece_of(place(), 8);
    ibv_send_wr w{};
    w.send_flags = IBV_SEND_SIGNALED;
    w.sg_list = &piece;
    w.num_sge = 1;
    if (adds_) {
      w.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
      w.wr.atomic = {
          .remote_addr = to, .compare_add = value - before, .swap = 0, .rkey = window.key};
      return post(w);
    }
    w.opcode = IBV_WR_RDMA_READ;
    w.wr.rdma = {.remote_addr = to, .rkey = window.key};
    FERRY_CHECK(post(w));
  }
  std::byte* const at = place();
  std::memcpy(at, &value, 8);
  ibv_sge piece = piece_of(at, 8);
  ibv_send_wr w{};
  w.opcode = IBV_WR_RDMA_WRITE;
  w.send_flags = IBV_SEND_SIGNALED;
  if (covers) w.send_flags |= IBV_SEND_FENCE;
  if (inline_bytes_ >= 8) w.send_flags |= IBV_SEND_INLINE;
  w.sg_list = &piece;
  w.num_sge = 1;
  w.wr.rdma = {.remote_addr = to, .rkey = window.key};
  return post(w);
}

// The responder reads after it has carried out every earlier write of the queue, and what it reads
// on PCIe pushes those writes before it to memory.
result<void> verbs_queue::settle() {
  ibv_sge piece = piece_of(place(), 8);
  ibv_send_wr w{};
  w.opcode = IBV_WR_RDMA_READ;
  w.send_flags = IBV_SEND_SIGNALED;
  w.sg_list = &piece;
  w.num_sge = 1;
  w.wr.rdma = {.remote_addr = window.address, .rkey = window.key};
  FERRY_CHECK(post(w));
  settling_ = posted_;
  return {};
}

result<void> verbs_queue::fetch(std::uint64_t from, std::size_t bytes) {
  ibv_sge piece =
      piece_of(staging_.data() + entries_ * put_bytes_, static_cast<std::uint32_t>(bytes));
  ibv_send_wr w{};
  w.opcode = IBV_WR_RDMA_READ;
  w.send_flags = IBV_SEND_SIGNALED;
  w.sg_list = &piece;
  w.num_sge = 1;
  w.wr.rdma = {.remote_addr = from, .rkey = window.key};
  return post(w);
}

result<void> verbs_queue::poll(int rank) {
  ibv_wc ended[16];
  while (!failure_ && connected) {
    int const count = ibv_poll_cq(completions_, 16, ended);
    if (count < 0)
      failure_ = fail(error_code::transport, "{}'s completion queue to rank {} broke",
                      device_->name(), rank);
    for (int i = 0; i < count && !failure_; ++i) {
      if (ended[i].status == IBV_WC_SUCCESS) {
        done_ = ended[i].wr_id + 1;
        moved_ = std::chrono::steady_clock::now();
        continue;
      }
      bool const silent = ended[i].status == IBV_WC_RETRY_EXC_ERR;
      failure_ = fail(silent ? error_code::unreachable : error_code::transport,
                      "{} ended an operation to rank {} with: {}", device_->name(), rank,
                      device_->library().status_name(ended[i].status));
    }
    if (count < 16) break;
  }
  if (failure_) return error(*failure_);
  return nudge();
}

// Soft-RoCE's sender may rest with work before it when it has just missed the end of what that work
// waits for; any new entry wakes it. A write of nothing is one, and harms no other NIC.
result<void> verbs_queue::nudge() {
  if (posted_ == done_ || !has_room(1)) return {};
  auto const now = std::chrono::steady_clock::now();
  if (now - moved_ < patience_with_queue) return {};
  moved_ = now;
  ibv_send_wr w{};
  w.opcode = IBV_WR_RDMA_WRITE;
  w.send_flags = IBV_SEND_SIGNALED;
  w.wr.rdma = {.remote_addr = window.address, .rkey = window.key};
  return post(w);
}

}  // namespace ferry
