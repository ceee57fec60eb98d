// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// libFuzzer's entry: what the environment and a caller's options may hold.

#include "group/socket.hpp"

#include <ferry/options.hpp>

#include <cstdlib>
#include <cstring>
#include <string>

namespace {

/// Takes numbers from the bytes, and zeros when they are used up.
class numbers {
 public:
  numbers(std::uint8_t const* data, std::size_t size) : data_(data), left_(size) {}
  template <class T>
  void fill(T& value) {
    std::underlying_type_t<wrapped<T>> raw{};
    std::size_t const part = left_ < sizeof raw ? left_ : sizeof raw;
    std::memcpy(&raw, data_, part);
    data_ += part;
    left_ -= part;
    value = static_cast<T>(raw);
  }

 private:
  template <class T, bool = std::is_enum_v<T>>
  struct as_enum {
    enum class type : T {};
  };
  template <class T>
  struct as_enum<T, true> {
    using type = T;
  };
  template <class T>
  using wrapped = typename as_enum<T>::type;
  std::uint8_t const* data_;
  std::size_t left_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace ferry;
  std::string const text(reinterpret_cast<char const*>(data), size);
  if (auto const where = parse_endpoint(text)) {
    if (where->host.empty() || where->port == 0) std::abort();
    if (!parse_endpoint(to_string(*where))) std::abort();
  }
  if (auto const port = parse_port(text); port && *port == 0) std::abort();

  numbers from(data, size);
  exchange_options o;
  int ranks = 0;
  from.fill(ranks);
  from.fill(o.num_experts);
  from.fill(o.topk);
  from.fill(o.hidden);
  from.fill(o.max_tokens);
  from.fill(o.tokens);
  from.fill(o.wire);
  from.fill(o.combine_wire);
  from.fill(o.layout);
  from.fill(o.reduction);
  from.fill(o.via);
  from.fill(o.row_align);
  from.fill(o.capacity);
  from.fill(o.blocks);
  from.fill(o.num_microbatches);
  from.fill(o.round_tokens);
  from.fill(o.chunk_tokens);
  from.fill(o.network.mtu);
  from.fill(o.network.put_bytes);
  from.fill(o.network.queue_entries);
  from.fill(o.network.gid_index);
  // What passes is within the limits that the rest of ferry counts on.
  if (validate(o, ranks)) {
    if (o.topk < 1 || o.topk > 32 || o.hidden < 1 || o.max_tokens < 1 || ranks < 1) std::abort();
    if (o.round_tokens > o.max_tokens || o.chunk_tokens > 16) std::abort();
  }
  return 0;
}
