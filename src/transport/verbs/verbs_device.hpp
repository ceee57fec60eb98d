// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// An opened RDMA device: its port, the address that it is reached by, and registered memory.
#pragma once

#include <ferry/base/result.hpp>
#include <ferry/transport/verbs.hpp>

#include "transport/verbs/verbs_library.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ferry {

/// Closed, with what was registered, when it goes; queues go before.
class verbs_device {
 public:
  /// Errors   unsupported no device, no active port; invalid_argument a name or index that is not
  ///          there; transport what the device refused
  static result<std::unique_ptr<verbs_device>> open(verbs_options const& options);
  ~verbs_device();
  verbs_device(verbs_device const&) = delete;
  verbs_device& operator=(verbs_device const&) = delete;

  /// Makes memory known to the NIC, for peers too where `by_peers` says so.
  result<ibv_mr*> register_memory(std::span<std::byte> memory, bool by_peers);

  verbs_library const& library() const { return *library_; }
  ibv_context* context() const { return context_; }
  ibv_pd* domain() const { return domain_; }
  std::string const& name() const { return name_; }
  std::uint32_t vendor_id() const { return vendor_id_; }
  bool has_atomics() const { return has_atomics_; }
  /// Reads and atomics that may be under way at once: as the one who answers, and who asks.
  std::uint32_t answers_at_once() const { return answers_at_once_; }
  std::uint32_t asks_at_once() const { return asks_at_once_; }
  ibv_port_attr const& port() const { return port_; }
  int gid_index() const { return gid_index_; }
  union ibv_gid const& gid() const {
    return gid_;
  }

 private:
  explicit verbs_device(verbs_library const* library) : library_(library) {}
  result<void> look(verbs_options const& options);
  result<void> choose_gid(verbs_options const& options);
  /// Whether the address of this index belongs to RoCE v2.
  bool is_roce_v2(int port, int index) const;

  verbs_library const* library_;
  ibv_context* context_ = nullptr;
  ibv_pd* domain_ = nullptr;
  std::string name_;
  std::uint32_t vendor_id_ = 0;
  bool has_atomics_ = false;
  std::uint32_t answers_at_once_ = 1, asks_at_once_ = 1;
  ibv_port_attr port_{};
  int gid_index_ = 0;
  union ibv_gid gid_ {};
  std::vector<ibv_mr*> registered_;
};

/// Names of all devices.
result<std::vector<std::string>> device_names(verbs_library const& library);

}  // namespace ferry
