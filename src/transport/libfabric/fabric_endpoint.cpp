// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "transport/libfabric/fabric_endpoint.hpp"

#include "base/fail.hpp"
#include "transport/libfabric/fabric_choice.hpp"

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>

namespace ferry {
namespace {

constexpr std::uint64_t by_this_side = FI_SEND | FI_RECV | FI_READ | FI_WRITE;
constexpr std::uint64_t by_peers = FI_REMOTE_READ | FI_REMOTE_WRITE;

// Of a provider without anything to sleep on.
constexpr std::chrono::microseconds nap{100};

template <class T>
void close(T*& object) {
  if (object) fi_close(&object->fid);
  object = nullptr;
}

}  // namespace

result<std::unique_ptr<fabric_endpoint>> fabric_endpoint::open(libfabric_options const& options,
                                                               std::size_t num_completions) {
  FERRY_TRY(fabric_library const* const library, load_fabric(options.library));
  std::unique_ptr<fabric_endpoint> made(new fabric_endpoint(library));
  FERRY_TRY(made->info_, choose_domain(*library, options));
  made->name_ = options.provider + " on " + made->info_->domain_attr->name;
  FERRY_CHECK(made->open_all(num_completions));
  return made;
}

fabric_endpoint::~fabric_endpoint() {
  // Memory that belongs to the endpoint goes before it; other memory stays as long as it is
  // written.
  if (info_ && !(info_->domain_attr->mr_mode & FI_MR_ENDPOINT)) close(endpoint_);
  for (fid_mr*& mr : registered_) close(mr);
  close(endpoint_);
  close(completions_);
  close(peers_);
  close(domain_);
  close(fabric_);
  if (info_) library_->freeinfo(info_);
  if (wake_signal_ >= 0) ::close(wake_signal_);
}

error fabric_endpoint::refused(char const* what, ssize_t code) const {
  return fail(error_code::transport, "{} {}: {}", name_, what, text_of(code));
}

result<void> fabric_endpoint::open_all(std::size_t num_completions) {
  wake_signal_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_signal_ < 0) return fail_errno(error_code::io, "an event descriptor", errno);
  if (int const e = library_->fabric(info_->fabric_attr, &fabric_, nullptr))
    return refused("does not open", e);
  if (int const e = fi_domain(fabric_, info_, &domain_, nullptr))
    return refused("gives no domain", e);
  fi_av_attr about{};
  about.type = info_->domain_attr->av_type;
  if (int const e = fi_av_open(domain_, &about, &peers_, nullptr))
    return refused("takes no addresses", e);
  FERRY_CHECK(open_completions(num_completions));
  if (int const e = fi_endpoint(domain_, info_, &endpoint_, nullptr))
    return refused("gives no endpoint", e);
  if (int const e = fi_ep_bind(endpoint_, &peers_->fid, 0))
    return refused("does not bind addresses", e);
  if (int const e = fi_ep_bind(endpoint_, &completions_->fid, FI_TRANSMIT | FI_RECV))
    return refused("does not bind completions", e);
  if (int const e = fi_enable(endpoint_)) return refused("does not enable its endpoint", e);
  std::size_t bytes = 0;
  fi_getname(&endpoint_->fid, nullptr, &bytes);
  address_.resize(bytes);
  if (int const e = fi_getname(&endpoint_->fid, address_.data(), &bytes))
    return refused("does not know its address", e);
  return {};
}

result<void> fabric_endpoint::open_completions(std::size_t count) {
  fi_cq_attr about{};
  about.size = count;
  about.format = FI_CQ_FORMAT_MSG;
  about.wait_obj = FI_WAIT_FD;
  int e = fi_cq_open(domain_, &about, &completions_, nullptr);
  if (e == 0 && fi_control(&completions_->fid, FI_GETWAIT, &completion_signal_) == 0) return {};
  close(completions_);
  completion_signal_ = -1;
  about.wait_obj = FI_WAIT_NONE;
  if ((e = fi_cq_open(domain_, &about, &completions_, nullptr)))
    return refused("gives no completion queue", e);
  return {};
}

result<fid_mr*> fabric_endpoint::register_memory(std::span<std::byte> memory,
                                                 std::uint64_t access) {
  fid_mr* mr = nullptr;
  if (int const e =
          fi_mr_reg(domain_, memory.data(), memory.size(), access, 0, next_key_++, 0, &mr, nullptr))
    return fail(error_code::transport, "{} does not take {} bytes of memory: {}", name_,
                memory.size(), text_of(e));
  registered_.push_back(mr);
  if (info_->domain_attr->mr_mode & FI_MR_ENDPOINT) {
    if (int const e = fi_mr_bind(mr, &endpoint_->fid, 0)) return refused("does not bind memory", e);
    if (int const e = fi_mr_enable(mr)) return refused("does not enable memory", e);
  }
  return mr;
}

result<local_memory> fabric_endpoint::register_local(std::span<std::byte> memory) {
  if (!(info_->domain_attr->mr_mode & FI_MR_LOCAL)) return local_memory{memory, nullptr};
  FERRY_TRY(fid_mr* const mr, register_memory(memory, by_this_side));
  return local_memory{memory, fi_mr_desc(mr)};
}

result<exposed_memory> fabric_endpoint::expose(std::span<std::byte> memory) {
  FERRY_TRY(fid_mr* const mr, register_memory(memory, by_peers));
  bool const by_address = info_->domain_attr->mr_mode & FI_MR_VIRT_ADDR;
  return exposed_memory{by_address ? reinterpret_cast<std::uint64_t>(memory.data()) : 0,
                        fi_mr_key(mr)};
}

result<fi_addr_t> fabric_endpoint::insert(std::span<std::byte const> address) {
  if (address.size() != address_.size())
    return fail(error_code::malformed_input, "an address of {} bytes; those of {} have {}",
                address.size(), name_, address_.size());
  fi_addr_t made = FI_ADDR_NOTAVAIL;
  if (fi_av_insert(peers_, address.data(), 1, &made, 0, nullptr) != 1)
    return fail(error_code::malformed_input, "{} cannot read an address of {} bytes", name_,
                address.size());
  return made;
}

ssize_t fabric_endpoint::write(local_memory const& memory, std::byte const* from, std::size_t bytes,
                               fi_addr_t to, fi_rma_iov there, void* context) {
  iovec piece{const_cast<std::byte*>(from), bytes};
  void* description = memory.description;
  fi_msg_rma m{};
  m.msg_iov = &piece;
  m.desc = &description;
  m.iov_count = 1;
  m.addr = to;
  m.rma_iov = &there;
  m.rma_iov_count = 1;
  m.context = context;
  return fi_writemsg(endpoint_, &m, FI_DELIVERY_COMPLETE | FI_COMPLETION);
}

ssize_t fabric_endpoint::read(local_memory const& memory, std::byte* into, std::size_t bytes,
                              fi_addr_t from, std::uint64_t address, std::uint64_t key,
                              void* context) {
  return fi_read(endpoint_, into, bytes, memory.description, from, address, key, context);
}

ssize_t fabric_endpoint::send(local_memory const& memory, std::byte const* from, std::size_t bytes,
                              fi_addr_t to, void* context) {
  iovec piece{const_cast<std::byte*>(from), bytes};
  void* description = memory.description;
  fi_msg m{};
  m.msg_iov = &piece;
  m.desc = &description;
  m.iov_count = 1;
  m.addr = to;
  m.context = context;
  return fi_sendmsg(endpoint_, &m, FI_DELIVERY_COMPLETE | FI_COMPLETION);
}

ssize_t fabric_endpoint::receive(local_memory const& memory, std::byte* into, std::size_t bytes,
                                 void* context) {
  return fi_recv(endpoint_, into, bytes, memory.description, FI_ADDR_UNSPEC, context);
}

ssize_t fabric_endpoint::completions(std::span<fi_cq_msg_entry> into) {
  return fi_cq_read(completions_, into.data(), into.size());
}

ssize_t fabric_endpoint::failed_completion(fi_cq_err_entry& into) {
  return fi_cq_readerr(completions_, &into, 0);
}

std::string fabric_endpoint::text_of(fi_cq_err_entry const& failed) const {
  return library_->error_text(failed.err);
}

std::string fabric_endpoint::text_of(ssize_t code) const {
  return library_->error_text(static_cast<int>(code < 0 ? -code : code));
}

void fabric_endpoint::wait(std::chrono::milliseconds at_most) {
  bool const sleeps = completion_signal_ >= 0;
  fid* all[] = {&completions_->fid};
  if (sleeps && fi_trywait(fabric_, all, 1) != FI_SUCCESS) return;
  auto const limit = sleeps ? std::chrono::duration_cast<std::chrono::microseconds>(at_most) : nap;
  timespec const time{static_cast<time_t>(limit.count() / 1'000'000),
                      static_cast<long>(limit.count() % 1'000'000 * 1000)};
  pollfd watched[2] = {{wake_signal_, POLLIN, 0}, {completion_signal_, POLLIN, 0}};
  if (::ppoll(watched, sleeps ? 2 : 1, &time, nullptr) > 0 && watched[0].revents) {
    std::uint64_t count = 0;
    // Nothing to read means that another wait has read it.
    if (::read(wake_signal_, &count, sizeof count) < 0 && errno != EAGAIN) return;
  }
}

void fabric_endpoint::wake() {
  std::uint64_t const one = 1;
  // It can only be full, and then the sleeper wakes as well.
  static_cast<void>(!::write(wake_signal_, &one, sizeof one));
}

}  // namespace ferry
