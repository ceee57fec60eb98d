// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// What is asked of a provider on behalf of one peer.
#pragma once

#include <ferry/base/result.hpp>

#include <rdma/fabric.h>
#include <rdma/fi_rma.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace ferry {

/// Memory of this process as local operations name it.
struct local_memory {
  std::span<std::byte> bytes;
  void* description;
};

/// A window as a peer's operations name it.
struct exposed_memory {
  std::uint64_t address;  ///< of its first byte
  std::uint64_t key;
};

/// Posting calls answer in the provider's own codes: 0, or negative where they failed.
class fabric_calls {
 public:
  virtual ~fabric_calls() = default;

  /// Errors   malformed_input the provider cannot read the address
  virtual result<fi_addr_t> insert(std::span<std::byte const> address) = 0;
  /// Completes once the bytes are in the peer's memory.
  virtual ssize_t write(local_memory const& memory, std::byte const* from, std::size_t bytes,
                        fi_addr_t to, fi_rma_iov there, void* context) = 0;
  virtual ssize_t read(local_memory const& memory, std::byte* into, std::size_t bytes,
                       fi_addr_t from, std::uint64_t address, std::uint64_t key, void* context) = 0;
  /// Completes once the peer has the message.
  virtual ssize_t send(local_memory const& memory, std::byte const* from, std::size_t bytes,
                       fi_addr_t to, void* context) = 0;
  virtual std::string text_of(ssize_t code) const = 0;
  /// Of provider and domain, for messages.
  virtual std::string const& name() const = 0;
};

}  // namespace ferry
