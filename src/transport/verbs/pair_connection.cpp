// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "transport/verbs/pair_connection.hpp"

#include "base/fail.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace ferry {
namespace {

/// The longest packet that this side takes, as an ibv_mtu.
std::uint32_t packet_code(verbs_device const& device, verbs_options const& options) {
  auto const of_port = static_cast<std::uint32_t>(device.port().active_mtu);
  if (options.mtu == 0) return of_port;
  // IBV_MTU_256 is 1, and each next one twice as long.
  return std::min(of_port, static_cast<std::uint32_t>(
                               std::countr_zero(static_cast<unsigned>(options.mtu) / 128)));
}

result<void> change(verbs_device const& device, ibv_qp* pair, ibv_qp_attr attributes, int mask,
                    char const* to) {
  if (int const e = device.library().modify_qp(pair, &attributes, mask))
    return fail_errno(error_code::transport,
                      fmt::format("{} does not make a queue pair {}", device.name(), to), e);
  return {};
}

}  // namespace

std::vector<std::byte> endpoint_of(verbs_device const& device, verbs_options const& options,
                                   ibv_qp const& pair) {
  pair_endpoint e{.number = pair.qp_num,
                  .lid = device.port().lid,
                  .mtu = packet_code(device, options),
                  .answers_at_once = device.answers_at_once(),
                  .gid = {},
                  .has_atomics = device.has_atomics()};
  std::memcpy(e.gid, device.gid().raw, sizeof e.gid);
  std::vector<std::byte> bytes(sizeof e);
  std::memcpy(bytes.data(), &e, sizeof e);
  return bytes;
}

result<pair_endpoint> read_endpoint(std::span<std::byte const> bytes) {
  pair_endpoint e{};
  if (bytes.size() != sizeof e)
    return fail(error_code::malformed_input, "an endpoint of {} bytes instead of {}", bytes.size(),
                sizeof e);
  std::memcpy(&e, bytes.data(), sizeof e);
  if (e.mtu < IBV_MTU_256 || e.mtu > IBV_MTU_4096)
    return fail(error_code::malformed_input, "an endpoint with the packet size {} of {} to {}",
                e.mtu, static_cast<int>(IBV_MTU_256), static_cast<int>(IBV_MTU_4096));
  if (e.answers_at_once < 1 || e.answers_at_once > 16)
    return fail(error_code::malformed_input, "an endpoint that answers {} reads at once; 1 to 16",
                e.answers_at_once);
  if (e.has_atomics > 1)
    return fail(error_code::malformed_input, "an endpoint with atomics of kind {} of 0 to 1",
                e.has_atomics);
  return e;
}

result<void> reset_pair(verbs_device const& device, ibv_qp* pair) {
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_RESET;
  return change(device, pair, a, IBV_QP_STATE, "new");
}

result<void> connect_pair(verbs_device const& device, verbs_options const& options, ibv_qp* pair,
                          pair_endpoint const& to) {
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_INIT;
  a.port_num = static_cast<std::uint8_t>(options.port);
  a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                      (device.has_atomics() ? int{IBV_ACCESS_REMOTE_ATOMIC} : 0);
  FERRY_CHECK(change(device, pair, a,
                     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
                     "ready to connect"));
  a = {};
  a.qp_state = IBV_QPS_RTR;
  a.path_mtu = static_cast<ibv_mtu>(std::min(to.mtu, packet_code(device, options)));
  a.dest_qp_num = to.number;
  a.max_dest_rd_atomic = static_cast<std::uint8_t>(device.answers_at_once());
  a.min_rnr_timer = 12;
  a.ah_attr.is_global = 1;
  std::memcpy(a.ah_attr.grh.dgid.raw, to.gid, sizeof to.gid);
  a.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(device.gid_index());
  a.ah_attr.grh.hop_limit = 64;
  a.ah_attr.grh.traffic_class = static_cast<std::uint8_t>(options.traffic_class);
  a.ah_attr.dlid = static_cast<std::uint16_t>(to.lid);
  a.ah_attr.sl = static_cast<std::uint8_t>(options.service_level);
  a.ah_attr.port_num = static_cast<std::uint8_t>(options.port);
  FERRY_CHECK(change(device, pair, a,
                     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
                     "ready to receive"));
  a = {};
  a.qp_state = IBV_QPS_RTS;
  a.timeout = static_cast<std::uint8_t>(options.timeout);
  a.retry_cnt = static_cast<std::uint8_t>(options.retries);
  a.rnr_retry = 7;
  a.max_rd_atomic = static_cast<std::uint8_t>(std::min(to.answers_at_once, device.asks_at_once()));
  return change(device, pair, a,
                IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
                "ready to send");
}

}  // namespace ferry
