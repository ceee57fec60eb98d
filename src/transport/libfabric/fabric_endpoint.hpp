// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// An opened domain of a provider: one endpoint for all peers, its completions, and memory that is
/// registered with it.
#pragma once

#include <ferry/base/result.hpp>
#include <ferry/transport/libfabric.hpp>

#include "transport/libfabric/fabric_calls.hpp"
#include "transport/libfabric/fabric_library.hpp"

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_rma.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ferry {

/// Everything is closed when it goes.
class fabric_endpoint final : public fabric_calls {
 public:
  /// Errors   unsupported the library, provider or domain is not there; transport what the provider
  ///          refused
  static result<std::unique_ptr<fabric_endpoint>> open(libfabric_options const& options,
                                                       std::size_t num_completions);
  ~fabric_endpoint() override;
  fabric_endpoint(fabric_endpoint const&) = delete;
  fabric_endpoint& operator=(fabric_endpoint const&) = delete;

  /// Registers memory that operations read and write on this side.
  result<local_memory> register_local(std::span<std::byte> memory);
  /// Registers memory that peers read and write.
  result<exposed_memory> expose(std::span<std::byte> memory);

  /// What peers need to name this endpoint.
  std::vector<std::byte> const& address() const { return address_; }
  result<fi_addr_t> insert(std::span<std::byte const> address) override;
  std::size_t most_put_bytes() const { return info_->ep_attr->max_msg_size; }
  std::string const& name() const override { return name_; }

  ssize_t write(local_memory const& memory, std::byte const* from, std::size_t bytes, fi_addr_t to,
                fi_rma_iov there, void* context) override;
  ssize_t read(local_memory const& memory, std::byte* into, std::size_t bytes, fi_addr_t from,
               std::uint64_t address, std::uint64_t key, void* context) override;
  ssize_t send(local_memory const& memory, std::byte const* from, std::size_t bytes, fi_addr_t to,
               void* context) override;
  ssize_t receive(local_memory const& memory, std::byte* into, std::size_t bytes, void* context);
  ssize_t completions(std::span<fi_cq_msg_entry> into);
  /// The one that failed, after completions() has said so.
  ssize_t failed_completion(fi_cq_err_entry& into);
  std::string text_of(fi_cq_err_entry const& failed) const;
  std::string text_of(ssize_t code) const override;

  /// Sleeps until there may be completions, wake() was called, or the time is over.
  void wait(std::chrono::milliseconds at_most);
  void wake();

 private:
  explicit fabric_endpoint(fabric_library const* library) : library_(library) {}
  result<void> open_all(std::size_t num_completions);
  result<void> open_completions(std::size_t count);
  result<fid_mr*> register_memory(std::span<std::byte> memory, std::uint64_t access);
  error refused(char const* what, ssize_t code) const;

  fabric_library const* library_;
  std::string name_;  ///< provider and domain, for messages
  fi_info* info_ = nullptr;
  fid_fabric* fabric_ = nullptr;
  fid_domain* domain_ = nullptr;
  fid_av* peers_ = nullptr;
  fid_cq* completions_ = nullptr;
  fid_ep* endpoint_ = nullptr;
  std::vector<fid_mr*> registered_;
  std::vector<std::byte> address_;
  std::uint64_t next_key_ = 1;
  int completion_signal_ =
      -1;  ///< readable when there may be completions; -1: the provider has none
  int wake_signal_ = -1;
};

}  // namespace ferry
