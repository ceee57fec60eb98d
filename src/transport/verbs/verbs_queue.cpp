// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "transport/verbs/verbs_queue.hpp"

#include "base/fail.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

namespace ferry {
namespace {

/// A queue as its peer must know it. All ranks are little-endian.
struct endpoint_bytes {
  std::uint32_t number;
  std::uint32_t lid;
  std::uint32_t mtu;
  std::uint32_t answers_at_once;  ///< reads and atomics
  std::uint8_t gid[16];
};
static_assert(sizeof(endpoint_bytes) == 32);

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
  endpoint_bytes e{.number = pair_->qp_num,
                   .lid = device_->port().lid,
                   .mtu = packet_code(),
                   .answers_at_once = device_->answers_at_once(),
                   .gid = {}};
  std::memcpy(e.gid, device_->gid().raw, sizeof e.gid);
  std::vector<std::byte> bytes(sizeof e);
  std::memcpy(bytes.data(), &e, sizeof e);
  return bytes;
}

std::uint32_t verbs_queue::packet_code() const {
  auto const of_port = static_cast<std::uint32_t>(device_->port().active_mtu);
  if (options_.mtu == 0) return of_port;
  // IBV_MTU_256 is 1, and each next one twice as long.
  return std::min(of_port, static_cast<std::uint32_t>(
                               std::countr_zero(static_cast<unsigned>(options_.mtu) / 128)));
}

result<void> verbs_queue::change(ibv_qp_attr attributes, int mask, char const* to) {
  if (int const e = device_->library().modify_qp(pair_, &attributes, mask))
    return fail_errno(error_code::transport,
                      fmt::format("{} does not make a queue pair {}", device_->name(), to), e);
  return {};
}

result<void> verbs_queue::connect(std::span<std::byte const> endpoint, peer_window const& w) {
  endpoint_bytes e{};
  if (endpoint.size() != sizeof e)
    return fail(error_code::malformed_input, "an endpoint of {} bytes instead of {}",
                endpoint.size(), sizeof e);
  std::memcpy(&e, endpoint.data(), sizeof e);
  if (e.mtu < IBV_MTU_256 || e.mtu > IBV_MTU_4096)
    return fail(error_code::malformed_input, "an endpoint with the packet size {} of {} to {}",
                e.mtu, static_cast<int>(IBV_MTU_256), static_cast<int>(IBV_MTU_4096));
  if (e.answers_at_once < 1 || e.answers_at_once > 16)
    return fail(error_code::malformed_input, "an endpoint that answers {} reads at once; 1 to 16",
                e.answers_at_once);
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_RESET;
  FERRY_CHECK(change(a, IBV_QP_STATE, "new"));
  a.qp_state = IBV_QPS_INIT;
  a.port_num = static_cast<std::uint8_t>(options_.port);
  a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                      (device_->has_atomics() ? int{IBV_ACCESS_REMOTE_ATOMIC} : 0);
  FERRY_CHECK(change(a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
                     "ready to connect"));
  a = {};
  a.qp_state = IBV_QPS_RTR;
  a.path_mtu = static_cast<ibv_mtu>(std::min(e.mtu, packet_code()));
  a.dest_qp_num = e.number;
  a.max_dest_rd_atomic = static_cast<std::uint8_t>(device_->answers_at_once());
  a.min_rnr_timer = 12;
  a.ah_attr.is_global = 1;
  std::memcpy(a.ah_attr.grh.dgid.raw, e.gid, sizeof e.gid);
  a.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(device_->gid_index());
  a.ah_attr.grh.hop_limit = 64;
  a.ah_attr.grh.traffic_class = static_cast<std::uint8_t>(options_.traffic_class);
  a.ah_attr.dlid = static_cast<std::uint16_t>(e.lid);
  a.ah_attr.sl = static_cast<std::uint8_t>(options_.service_level);
  a.ah_attr.port_num = static_cast<std::uint8_t>(options_.port);
  FERRY_CHECK(change(a,
                     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
                     "ready to receive"));
  a = {};
  a.qp_state = IBV_QPS_RTS;
  a.timeout = static_cast<std::uint8_t>(options_.timeout);
  a.retry_cnt = static_cast<std::uint8_t>(options_.retries);
  a.rnr_retry = 7;
  a.max_rd_atomic = static_cast<std::uint8_t>(std::min(e.answers_at_once, device_->asks_at_once()));
  FERRY_CHECK(change(a,
                     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                         IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
                     "ready to send"));
  window = w;
  connected = true;
  done_ = posted_;
  failure_.reset();
  words_.clear();
  return {};
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
    if (device_->has_atomics()) {
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
