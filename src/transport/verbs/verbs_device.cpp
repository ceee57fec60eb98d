// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "transport/verbs/verbs_device.hpp"

#include "base/fail.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>

namespace ferry {
namespace {

/// The library's list of devices, freed when it goes.
class device_list {
 public:
  explicit device_list(verbs_library const& v) : library_(v), list_(v.list_devices(&count_)) {}
  ~device_list() {
    if (list_) library_.free_list(list_);
  }
  device_list(device_list const&) = delete;
  // A machine without the kernel's RDMA part gives no list at all.
  int count() const { return list_ ? count_ : 0; }
  ibv_device* at(int i) const { return list_[i]; }

 private:
  verbs_library const& library_;
  int count_ = 0;
  ibv_device** list_;
};

/// The whole port attributes, through the device's table: the library's own function of this name
/// knows an older structure.
int query_port(ibv_context* context, int port, ibv_port_attr* into) {
  *into = {};
  verbs_context* const v = verbs_get_ctx_op(context, query_port);
  if (!v) return ENOSYS;
  return v->query_port(context, static_cast<std::uint8_t>(port), into, sizeof *into);
}

bool is_zero(union ibv_gid const& gid) {
  return gid.global.subnet_prefix == 0 && gid.global.interface_id == 0;
}
bool is_ipv4(union ibv_gid const& gid) {
  static constexpr std::uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::memcmp(gid.raw, mapped, sizeof mapped) == 0;
}

}  // namespace

result<std::vector<std::string>> device_names(verbs_library const& library) {
  device_list const all(library);
  std::vector<std::string> names;
  for (int i = 0; i < all.count(); ++i) names.emplace_back(library.name_of(all.at(i)));
  return names;
}

result<std::unique_ptr<verbs_device>> verbs_device::open(verbs_options const& options) {
  FERRY_TRY(verbs_library const* const library, load_verbs(options.library));
  device_list const all(*library);
  if (all.count() == 0) return fail(error_code::unsupported, "this machine has no RDMA device");
  std::optional<error> first;
  for (int i = 0; i < all.count(); ++i) {
    std::string const name = library->name_of(all.at(i));
    if (!options.device.empty() && name != options.device) continue;
    std::unique_ptr<verbs_device> d(new verbs_device(library));
    d->name_ = name;
    d->context_ = library->open(all.at(i));
    result<void> const right = d->context_
                                   ? d->look(options)
                                   : result<void>(fail_errno(error_code::transport, name, errno));
    if (right) return d;
    if (!first) first = right.error();
  }
  if (first) return std::move(*first);
  return fail(error_code::invalid_argument, "there is no RDMA device {} among {}", options.device,
              all.count());
}

result<void> verbs_device::look(verbs_options const& options) {
  ibv_device_attr about{};
  if (int const e = library_->query_device(context_, &about))
    return fail_errno(error_code::transport, name_ + " tells nothing of itself", e);
  vendor_id_ = about.vendor_id;
  has_atomics_ = about.atomic_cap != IBV_ATOMIC_NONE;
  answers_at_once_ = static_cast<std::uint32_t>(std::clamp(about.max_qp_rd_atom, 1, 16));
  asks_at_once_ = static_cast<std::uint32_t>(std::clamp(about.max_qp_init_rd_atom, 1, 16));
  if (options.port < 1 || options.port > about.phys_port_cnt)
    return fail(error_code::invalid_argument, "{} has ports 1 to {}, and no port {}", name_,
                about.phys_port_cnt, options.port);
  if (int const e = query_port(context_, options.port, &port_))
    return fail_errno(error_code::transport, name_ + " tells nothing of its port", e);
  if (port_.state != IBV_PORT_ACTIVE)
    return fail(error_code::unsupported, "port {} of {} is not active", options.port, name_);
  FERRY_CHECK(choose_gid(options));
  domain_ = library_->alloc_pd(context_);
  if (!domain_) return fail_errno(error_code::transport, name_ + " gives no domain", errno);
  return {};
}

result<void> verbs_device::choose_gid(verbs_options const& options) {
  int best = -1, best_score = -1;
  for (int i = 0; i < port_.gid_tbl_len; ++i) {
    union ibv_gid gid {};
    if (options.gid_index >= 0 && i != options.gid_index) continue;
    if (library_->query_gid(context_, static_cast<std::uint8_t>(options.port), i, &gid) != 0 ||
        is_zero(gid))
      continue;
    int const score = is_roce_v2(options.port, i) ? (is_ipv4(gid) ? 2 : 1) : 0;
    if (score <= best_score) continue;
    best = i;
    best_score = score;
    gid_ = gid;
  }
  if (best < 0 && options.gid_index >= 0)
    return fail(error_code::invalid_argument, "port {} of {} has no address {} among {}",
                options.port, name_, options.gid_index, port_.gid_tbl_len);
  if (best < 0)
    return fail(error_code::unsupported, "port {} of {} has no address", options.port, name_);
  gid_index_ = best;
  return {};
}

bool verbs_device::is_roce_v2(int port, int index) const {
  std::ifstream file("/sys/class/infiniband/" + name_ + "/ports/" + std::to_string(port) +
                     "/gid_attrs/types/" + std::to_string(index));
  std::string line;
  return std::getline(file, line) && line == "RoCE v2";
}

result<ibv_mr*> verbs_device::register_memory(std::span<std::byte> memory, bool by_peers) {
  int access = IBV_ACCESS_LOCAL_WRITE;
  if (by_peers) access |= IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  if (by_peers && has_atomics_) access |= IBV_ACCESS_REMOTE_ATOMIC;
  ibv_mr* const mr = library_->reg_mr(domain_, memory.data(), memory.size(), access);
  if (!mr)
    return fail_errno(error_code::transport,
                      fmt::format("{} does not take {} bytes of memory", name_, memory.size()),
                      errno);
  registered_.push_back(mr);
  return mr;
}

verbs_device::~verbs_device() {
  for (ibv_mr* const mr : registered_) library_->dereg_mr(mr);
  if (domain_) library_->dealloc_pd(domain_);
  if (context_) library_->close(context_);
}

}  // namespace ferry
