// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "transport/mlx5_nic.hpp"

#include "base/fail.hpp"
#include "transport/verbs/pair_connection.hpp"

#include <infiniband/mlx5dv.h>

#include <dlfcn.h>

#include <bit>
#include <cerrno>
#include <mutex>
#include <vector>

namespace ferry {
namespace {

using device_verbs::memory_keys;
using device_verbs::queue_pair;

using init_function = int (*)(mlx5dv_obj*, std::uint64_t);

class mlx5_nic final : public device_verbs::direct_nic {
 public:
  mlx5_nic(std::unique_ptr<verbs_device> device, verbs_options o, init_function where_it_lies)
      : device_(std::move(device)), options_(std::move(o)), where_it_lies_(where_it_lies) {}
  ~mlx5_nic() override {
    for (made const& q : queues_) destroy(q);
  }

  device_verbs::nic_vendor vendor() const override { return device_verbs::nic_vendor::mlx5; }

  result<memory_keys> register_memory(std::span<std::byte> memory, bool by_peers) override {
    std::lock_guard const lock(mutex_);
    FERRY_TRY(ibv_mr* const mr, device_->register_memory(memory, by_peers));
    return memory_keys{mr->lkey, mr->rkey};
  }

  result<queue_pair> make_queue(std::uint32_t num_entries) override {
    if (!std::has_single_bit(num_entries) || num_entries > device_verbs::mlx5::most_entries)
      return fail(error_code::invalid_argument, "a queue of {} entries; a power of two up to {}",
                  num_entries, device_verbs::mlx5::most_entries);
    std::lock_guard const lock(mutex_);
    // The library makes room for the longest entry that its own calls could want, which may be
    // several of ferry's: it is asked for fewer until the queue has as many blocks as are wanted.
    for (std::uint32_t asked = num_entries; asked > 0; asked /= 2) {
      FERRY_TRY(made const q, make(num_entries, asked));
      result<queue_pair> const lies = place_of(q);
      if (lies && lies->num_entries == num_entries) {
        queues_.push_back(q);
        return lies;
      }
      destroy(q);
      if (!lies) return lies;
      if (lies->num_entries < num_entries) break;
    }
    return fail(error_code::unsupported, "{} makes no send queue of {} blocks", device_->name(),
                num_entries);
  }

  result<std::vector<std::byte>> endpoint_of(queue_pair const& queue) override {
    FERRY_TRY(ibv_qp* const pair, pair_of(queue));
    return ferry::endpoint_of(*device_, options_, *pair);
  }

  result<void> connect(queue_pair const& queue, std::span<std::byte const> endpoint) override {
    FERRY_TRY(ibv_qp* const pair, pair_of(queue));
    FERRY_TRY(pair_endpoint const theirs, read_endpoint(endpoint));
    // Signals are additions here: there is no other way in this format.
    if (!device_->has_atomics() || !theirs.has_atomics)
      return fail(error_code::unsupported, "{} reaches a NIC, and one of the two has no atomics",
                  device_->name());
    return connect_pair(*device_, options_, pair, theirs);
  }

 private:
  struct made {
    ibv_cq* completions;
    ibv_qp* pair;
  };

  result<made> make(std::uint32_t num_entries, std::uint32_t asked) {
    verbs_library const& library = device_->library();
    made q{};
    q.completions =
        library.create_cq(device_->context(), static_cast<int>(num_entries), nullptr, nullptr, 0);
    if (!q.completions)
      return fail_errno(
          error_code::transport,
          fmt::format("{} has no completion queue of {}", device_->name(), num_entries), errno);
    ibv_qp_init_attr about{};
    about.send_cq = about.recv_cq = q.completions;
    about.qp_type = IBV_QPT_RC;
    about.cap = {.max_send_wr = asked,
                 .max_recv_wr = 1,
                 .max_send_sge = 1,
                 .max_recv_sge = 1,
                 .max_inline_data = 8};
    q.pair = library.create_qp(device_->domain(), &about);
    if (q.pair) return q;
    int const why = errno;
    destroy(q);
    return fail_errno(error_code::transport,
                      fmt::format("{} has no queue pair of {}", device_->name(), asked), why);
  }

  void destroy(made const& q) {
    if (q.pair) device_->library().destroy_qp(q.pair);
    if (q.completions) device_->library().destroy_cq(q.completions);
  }

  result<queue_pair> place_of(made const& q) {
    mlx5dv_qp pair{};
    mlx5dv_cq completions{};
    mlx5dv_obj both{};
    both.qp.in = q.pair;
    both.qp.out = &pair;
    both.cq.in = q.completions;
    both.cq.out = &completions;
    if (int const e = where_it_lies_(&both, MLX5DV_OBJ_QP | MLX5DV_OBJ_CQ))
      return fail_errno(error_code::transport,
                        device_->name() + " does not tell where its queues lie", e);
    if (pair.sq.stride != device_verbs::mlx5::entry_bytes ||
        completions.cqe_size != device_verbs::mlx5::completion_bytes)
      return fail(error_code::unsupported,
                  "{} has entries of {} bytes and completions of {}; ferry writes {} and reads {}",
                  device_->name(), pair.sq.stride, completions.cqe_size,
                  device_verbs::mlx5::entry_bytes, device_verbs::mlx5::completion_bytes);
    if (!std::has_single_bit(pair.sq.wqe_cnt) || !std::has_single_bit(completions.cqe_cnt) ||
        !pair.bf.reg || !pair.dbrec)
      return fail(error_code::unsupported,
                  "{} has queues of {} entries and {} completions, {} a doorbell", device_->name(),
                  pair.sq.wqe_cnt, completions.cqe_cnt, pair.bf.reg ? "with" : "without");
    queue_pair lies;
    lies.entries = static_cast<std::byte*>(pair.sq.buf);
    lies.num_entries = pair.sq.wqe_cnt;
    lies.number = q.pair->qp_num;
    lies.doorbell = static_cast<std::uint64_t*>(pair.bf.reg);
    lies.doorbell_record = reinterpret_cast<std::uint32_t*>(pair.dbrec);
    lies.completions = static_cast<std::byte*>(completions.buf);
    lies.num_completions = completions.cqe_cnt;
    lies.completion_number = completions.cqn;
    lies.completion_record = reinterpret_cast<std::uint32_t*>(completions.dbrec);
    device_verbs::mlx5::clear_completions(lies);
    return lies;
  }

  result<ibv_qp*> pair_of(queue_pair const& queue) {
    std::lock_guard const lock(mutex_);
    for (made const& q : queues_)
      if (q.pair->qp_num == queue.number) return q.pair;
    return fail(error_code::invalid_argument, "queue {} is none of {}", queue.number,
                device_->name());
  }

  std::unique_ptr<verbs_device> device_;
  verbs_options options_;
  init_function where_it_lies_;
  std::mutex mutex_;  ///< of the lists, here and in the device
  std::vector<made> queues_;
};

}  // namespace

result<std::unique_ptr<device_verbs::direct_nic>> open_mlx5_nic(
    std::unique_ptr<verbs_device> device, verbs_options const& options, char const* library) {
  // It stays for the life of the process, as libibverbs does, which uses the same one.
  void* const loaded = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (!loaded) {
    char const* const why = ::dlerror();
    return fail(error_code::unsupported, "no direct access to {}: {}", device->name(),
                why ? why : library);
  }
  auto const init = reinterpret_cast<init_function>(::dlsym(loaded, "mlx5dv_init_obj"));
  if (!init) {
    ::dlclose(loaded);
    return fail(error_code::unsupported, "no direct access to {}: {} has no mlx5dv_init_obj",
                device->name(), library);
  }
  return std::unique_ptr<device_verbs::direct_nic>(
      std::make_unique<mlx5_nic>(std::move(device), options, init));
}

}  // namespace ferry
