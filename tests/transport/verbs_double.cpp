// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// Stands in for libibverbs and libmlx5: two NICs of this process, "adds" with atomics and "plain"
// without. What is posted is carried out at once; completions lie in their queue until they are
// polled. Queues that are written directly lie in memory that nobody reads but the test.

#include "transport/verbs_double.hpp"

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <mutex>
#include <vector>

#undef ibv_query_port
#undef ibv_reg_mr

namespace {

ferry::test::verbs_double state;

struct nic {
  ibv_device device{};
  bool has_atomics = false;
};
nic adds{{}, true}, plain{{}, false};
ibv_device* all[] = {&adds.device, &plain.device, nullptr};

struct completion_queue {
  ibv_cq head{};  // first: what the caller knows is this
  std::mutex mutex;
  std::deque<ibv_wc> ended;
  std::vector<std::byte> direct;
  std::array<std::uint32_t, 2> record{};
};
struct send_queue {
  ibv_qp head{};  // likewise
  std::vector<std::byte> direct;
  std::array<std::uint32_t, 2> record{};
  std::uint64_t doorbell[32]{};
};
constexpr std::size_t block = 64;
completion_queue& of(ibv_cq* cq) {
  return *reinterpret_cast<completion_queue*>(cq);
}

template <class T>
T* at(std::uint64_t address) {
  return reinterpret_cast<T*>(address);
}

void carry_out(ibv_send_wr const& w) {
  ibv_sge const* const piece = w.num_sge ? w.sg_list : nullptr;
  switch (w.opcode) {
    case IBV_WR_RDMA_WRITE:
      ++state.writes;
      if (piece) std::memcpy(at<void>(w.wr.rdma.remote_addr), at<void>(piece->addr), piece->length);
      return;
    case IBV_WR_RDMA_READ:
      ++state.reads;
      if (piece) std::memcpy(at<void>(piece->addr), at<void>(w.wr.rdma.remote_addr), piece->length);
      return;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      ++state.adds;
      *at<std::uint64_t>(piece->addr) = std::atomic_ref(*at<std::uint64_t>(w.wr.atomic.remote_addr))
                                            .fetch_add(w.wr.atomic.compare_add);
      return;
    default: return;
  }
}

int post_send(ibv_qp* qp, ibv_send_wr* work, ibv_send_wr**) {
  completion_queue& queue = of(qp->send_cq);
  std::lock_guard const lock(queue.mutex);
  for (; work; work = work->next) {
    ibv_wc ended{};
    ended.wr_id = work->wr_id;
    ended.status = static_cast<ibv_wc_status>(state.ends_with.load());
    if (ended.status == IBV_WC_SUCCESS) carry_out(*work);
    queue.ended.push_back(ended);
  }
  return 0;
}

int poll_cq(ibv_cq* cq, int most, ibv_wc* into) {
  completion_queue& queue = of(cq);
  std::lock_guard const lock(queue.mutex);
  int count = 0;
  while (count < most && !state.holds && !queue.ended.empty()) {
    into[count++] = queue.ended.front();
    queue.ended.pop_front();
  }
  return count;
}

int query_port(ibv_context*, std::uint8_t, ibv_port_attr* into, std::size_t) {
  into->state = IBV_PORT_ACTIVE;
  into->active_mtu = IBV_MTU_4096;
  into->gid_tbl_len = 1;
  return 0;
}

}  // namespace

extern "C" {

ferry::test::verbs_double* verbs_double_of_this_process() {
  return &state;
}

ibv_device** ibv_get_device_list(int* count) {
  *count = 2;
  return all;
}
void ibv_free_device_list(ibv_device**) {}
char const* ibv_get_device_name(ibv_device* d) {
  return d == &adds.device ? "adds" : "plain";
}

ibv_context* ibv_open_device(ibv_device* d) {
  auto* const made = new verbs_context{};
  made->sz = sizeof *made;
  made->query_port = query_port;
  made->context.device = d;
  made->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
  made->context.ops.post_send = post_send;
  made->context.ops.poll_cq = poll_cq;
  return &made->context;
}
int ibv_close_device(ibv_context* c) {
  delete verbs_get_ctx(c);
  return 0;
}
int ibv_query_device(ibv_context* c, ibv_device_attr* into) {
  into->atomic_cap = c->device == &adds.device ? IBV_ATOMIC_HCA : IBV_ATOMIC_NONE;
  into->max_qp_rd_atom = into->max_qp_init_rd_atom = 16;
  into->phys_port_cnt = 1;
  into->vendor_id = static_cast<std::uint32_t>(state.vendor.load());
  return 0;
}
int ibv_query_gid(ibv_context*, std::uint8_t, int, union ibv_gid* into) {
  into->global.interface_id = 1;
  return 0;
}
ibv_pd* ibv_alloc_pd(ibv_context* c) {
  return new ibv_pd{c, 0};
}
int ibv_dealloc_pd(ibv_pd* pd) {
  delete pd;
  return 0;
}
ibv_mr* ibv_reg_mr(ibv_pd* pd, void* memory, std::size_t bytes, int) {
  return new ibv_mr{pd->context, pd, memory, bytes, 0, 1, 1};
}
int ibv_dereg_mr(ibv_mr* mr) {
  delete mr;
  return 0;
}
ibv_cq* ibv_create_cq(ibv_context* c, int entries, void*, ibv_comp_channel*, int) {
  auto* const made = new completion_queue;
  made->head.context = c;
  made->direct.resize(block * std::bit_ceil(static_cast<unsigned>(entries) + 1));
  return &made->head;
}
int ibv_destroy_cq(ibv_cq* cq) {
  delete &of(cq);
  return 0;
}
ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* about) {
  static std::atomic<std::uint32_t> last{0};
  auto* const made = new send_queue{};
  made->head.context = pd->context;
  made->head.send_cq = about->send_cq;
  made->head.qp_num = ++last;
  // As the library does: every entry might be one of its longest.
  made->direct.resize(block * std::bit_ceil(3 * about->cap.max_send_wr));
  return &made->head;
}
int ibv_modify_qp(ibv_qp*, ibv_qp_attr*, int) {
  return 0;
}
int ibv_destroy_qp(ibv_qp* qp) {
  delete reinterpret_cast<send_queue*>(qp);
  return 0;
}
char const* ibv_wc_status_str(ibv_wc_status status) {
  return status == IBV_WC_SUCCESS ? "success" : "a failure that was asked for";
}

int mlx5dv_init_obj(mlx5dv_obj* of, std::uint64_t) {
  auto& pair = *reinterpret_cast<send_queue*>(of->qp.in);
  auto& completions = *reinterpret_cast<completion_queue*>(of->cq.in);
  of->qp.out->dbrec = pair.record.data();
  of->qp.out->sq = {pair.direct.data(), static_cast<std::uint32_t>(pair.direct.size() / block),
                    static_cast<std::uint32_t>(block)};
  of->qp.out->bf = {pair.doorbell, 0};
  of->cq.out->buf = completions.direct.data();
  of->cq.out->dbrec = completions.record.data();
  of->cq.out->cqe_cnt = static_cast<std::uint32_t>(completions.direct.size() / block);
  of->cq.out->cqe_size = static_cast<std::uint32_t>(state.completion_bytes.load());
  of->cq.out->cqn = 9;
  return 0;
}

}  // extern "C"
