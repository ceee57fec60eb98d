// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "nic/emulated_nic.hpp"

#include <ferry/exec/cpu/waiter.hpp>
#include <ferry/memory/buffer.hpp>

#include <algorithm>
#include <bit>

namespace ferry::test {

using device_verbs::big;
using device_verbs::cpu_nic_access;

/// Queue memory is one buffer: entries, completions, records, registers, search table.
struct emulated_nic::queue_state {
  buffer memory;
  queue_pair pair;
  std::unique_ptr<queue_reader> reader;
  std::uint64_t rung = 0;         ///< the register's value at the last look
  std::uint32_t fetched = 0;      ///< entries read
  std::uint32_t position = 0;     ///< completions written
  std::uint32_t read = 0;         ///< completions that the queue's user has taken
  std::deque<operation> pending;  ///< read and not complete, in order
  bool connected = false, refused = false, failed = false;
  std::uint32_t peer_nic = 0, peer_queue = 0;
};

emulated_nic::emulated_nic(std::uint32_t id, nic_vendor vendor,
                           std::shared_ptr<registered_memory> memory, nic_faults faults,
                           bool with_thread)
    : id_(id), vendor_(vendor), memory_(std::move(memory)), faults_(faults), random_(faults.seed) {
  if (with_thread) thread_ = std::thread([this] { run(); });
}

emulated_nic::~emulated_nic() {
  stop_.store(true);
  if (thread_.joinable()) thread_.join();
  memory_->forget(id_);
}

void emulated_nic::run() {
  for (int idle = 0; !stop_.load(std::memory_order_relaxed);) {
    idle = turn() ? 0 : idle + 1;
    if (idle > 200)
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    else if (idle > 0)
      std::this_thread::yield();
  }
}

result<device_verbs::memory_keys> emulated_nic::register_memory(std::span<std::byte> memory,
                                                                bool by_peers) {
  std::uint32_t const key = memory_->add({.owner = id_,
                                          .address = reinterpret_cast<std::uint64_t>(memory.data()),
                                          .bytes = memory.size(),
                                          .mapped = memory.data(),
                                          .by_peers = by_peers});
  return device_verbs::memory_keys{key, key};
}

result<queue_pair> emulated_nic::make_queue(std::uint32_t num_entries) {
  if (!std::has_single_bit(num_entries))
    return error{error_code::invalid_argument, "entries: " + std::to_string(num_entries)};
  std::lock_guard lock(mutex_);
  auto q = std::make_unique<queue_state>();
  std::size_t const entries = std::size_t{num_entries} * 64;
  FERRY_TRY(q->memory, buffer::allocate(2 * entries + num_entries * 8 + 4096));
  std::byte* const base = q->memory.data();
  std::byte* const words = base + 2 * entries + num_entries * 8;
  queue_pair& p = q->pair;
  p.entries = base;
  p.num_entries = num_entries;
  p.number = 0x1234 + static_cast<std::uint32_t>(queues_.size());
  p.completions = base + entries;
  p.num_completions = num_entries;
  p.completion_number = 0x77 + static_cast<std::uint32_t>(queues_.size());
  auto const register_at = [&](std::size_t n) {
    return reinterpret_cast<std::uint64_t*>(words + 64 * n);
  };
  p.doorbell = register_at(0);
  if (vendor_ == nic_vendor::mlx5) {
    p.doorbell_record = reinterpret_cast<std::uint32_t*>(register_at(2));
    p.completion_record = reinterpret_cast<std::uint32_t*>(register_at(3));
  } else {
    p.completion_doorbell = register_at(1);
  }
  if (vendor_ == nic_vendor::bnxt) {
    p.search_table = reinterpret_cast<std::uint64_t*>(base + 2 * entries);
    p.mtu = 1024;
    p.handle = reinterpret_cast<std::uint64_t>(q.get());
  }
  device_verbs::with_format(vendor_, [&](auto format) { format.clear_completions(p); });
  switch (vendor_) {
    case nic_vendor::mlx5: q->reader = make_mlx5_reader(p); break;
    case nic_vendor::bnxt: q->reader = make_bnxt_reader(p, first_packet); break;
    case nic_vendor::ionic: q->reader = make_ionic_reader(p); break;
  }
  queues_.push_back(std::move(q));
  return queues_.back()->pair;
}

void emulated_nic::set_start(queue_pair const& queue, std::uint32_t index, std::uint32_t packet) {
  std::lock_guard lock(mutex_);
  queue_state& q = *queues_.at(queue.number - 0x1234);
  q.fetched = q.position = q.read = index;
  if (vendor_ == nic_vendor::bnxt) q.reader = make_bnxt_reader(q.pair, packet);
  if (queue.completion_record)
    cpu_nic_access{}.store(queue.completion_record, big(std::uint32_t{index & 0xffffff}));
}

result<std::vector<std::byte>> emulated_nic::endpoint_of(queue_pair const& queue) {
  std::vector<std::byte> bytes(8);
  std::memcpy(bytes.data(), &id_, 4);
  std::memcpy(bytes.data() + 4, &queue.number, 4);
  return bytes;
}

result<void> emulated_nic::connect(queue_pair const& queue, std::span<std::byte const> endpoint) {
  if (endpoint.size() != 8)
    return error{error_code::malformed_input,
                 "an endpoint of " + std::to_string(endpoint.size()) + " bytes instead of 8"};
  std::lock_guard lock(mutex_);
  queue_state& q = *queues_.at(queue.number - 0x1234);
  std::memcpy(&q.peer_nic, endpoint.data(), 4);
  std::memcpy(&q.peer_queue, endpoint.data() + 4, 4);
  q.connected = true;
  return {};
}

std::vector<refused> emulated_nic::refusals() const {
  std::lock_guard lock(mutex_);
  return refusals_;
}
nic_counts emulated_nic::counts() const {
  std::lock_guard lock(mutex_);
  return counts_;
}

bool emulated_nic::turn() {
  std::unique_lock lock(mutex_);
  if (happens(faults_.delay)) {
    auto const pause = faults_.longest_delay * static_cast<long>(random_() % 1024) / 1024;
    lock.unlock();
    std::this_thread::sleep_for(pause);
    lock.lock();
  }
  bool any = false;
  for (auto& q : queues_) any = take_doorbell(*q) || any;
  any = carry_out_one() || any;
  for (auto& q : queues_) any = complete(*q) || any;
  return any;
}

bool emulated_nic::take_doorbell(queue_state& q) {
  std::uint64_t const value = std::atomic_ref(*q.pair.doorbell).load(std::memory_order_acquire);
  if (value == q.rung) return false;
  q.rung = value;
  ++counts_.doorbells;
  if (q.failed || q.refused) return true;
  std::uint32_t end = q.fetched;
  if (refusal const r = q.reader->announced(value, q.fetched, end); r != refusal::none) {
    refuse(q, r, q.fetched);
    return true;
  }
  // What is pending, and what comes, has to fit the queue.
  if (q.pending.size() + (end - q.fetched) > q.pair.num_entries) {
    refuse(q, refusal::queue_overrun, q.fetched);
    return true;
  }
  if (!q.connected && end != q.fetched) {
    refuse(q, refusal::not_connected, q.fetched);
    return true;
  }
  return fetch(q, end);
}

bool emulated_nic::fetch(queue_state& q, std::uint32_t end) {
  for (; q.fetched != end; ++q.fetched) {
    operation o{.index = q.fetched};
    if (refusal const r = q.reader->decode(q.fetched, o.what, o.opcode); r != refusal::none) {
      refuse(q, r, q.fetched);
      return true;
    }
    ++counts_.entries;
    q.pending.push_back(o);
  }
  return true;
}

// An atomic starts after all earlier operations of its queue; so does the number of a write with
// an immediate. What is fenced waits for earlier atomics. Everything else may overtake.
bool emulated_nic::may_start(queue_state const& q, std::size_t i) const {
  operation const& o = q.pending[i];
  if (o.done || q.failed) return false;
  for (std::size_t k = 0; k < i; ++k) {
    operation const& earlier = q.pending[k];
    if (earlier.lost || !earlier.done) {
      if (o.what.what == verb::fetch_add || o.what.what == verb::write_with_immediate) return false;
      if (o.what.fenced && earlier.what.what == verb::fetch_add) return false;
    }
  }
  return true;
}

bool emulated_nic::carry_out_one() {
  std::vector<std::pair<queue_state*, std::size_t>> ready;
  std::size_t const start = random_();
  for (std::size_t n = 0; n < queues_.size(); ++n) {
    queue_state& q = *queues_[(start + n) % queues_.size()];
    for (std::size_t i = 0; i < q.pending.size() && ready.size() < 64; ++i)
      if (may_start(q, i)) ready.emplace_back(&q, i);
  }
  if (ready.empty()) return false;
  auto const [q, i] = ready[happens(faults_.reorder) ? random_() % ready.size() : 0];
  for (std::size_t k = 0; k < i; ++k)
    if (!q->pending[k].done) {
      ++counts_.out_of_order;
      break;
    }
  carry_out(*q, q->pending[i]);
  return true;
}

void emulated_nic::carry_out(queue_state& q, operation& o) {
  o.done = true;
  bool const plain = o.what.what == verb::write;
  if (plain && happens(faults_.lose)) {
    o.lost = true;
    return;
  }
  o.status = happens(faults_.fail) ? faults_.failure : move(q, o);
  if (happens(faults_.late)) o.turns_left = static_cast<int>(random_() % 50);
}

nic_status emulated_nic::move(queue_state& q, operation const& o) {
  work const& w = o.what;
  bool const adds = w.what == verb::fetch_add, inlined = w.what == verb::inline_word;
  std::size_t const bytes = adds || inlined ? 8 : w.bytes;
  refusal why = refusal::none;
  auto const report = [&](nic_status s) {
    refusals_.push_back({why, q.pair.number, o.index});
    return s;
  };
  std::byte* local = nullptr;
  if (!inlined && bytes != 0) {
    auto const found = memory_->find(w.local_key, id_, false, w.local, bytes, why);
    if (!found) return report(nic_status::local_protection);
    local = found->at;
  }
  auto const there = memory_->find(w.remote_key, q.peer_nic, true, w.remote, bytes, why);
  if (!there) return report(nic_status::remote_access);
  if (adds) {
    if (w.remote % 8 != 0 || reinterpret_cast<std::uintptr_t>(there->at) % 8 != 0) {
      why = refusal::misaligned_atomic;
      return report(nic_status::remote_invalid);
    }
    std::uint64_t const before = std::atomic_ref(*reinterpret_cast<std::uint64_t*>(there->at))
                                     .fetch_add(w.word, std::memory_order_acq_rel);
    std::memcpy(local, &before, 8);
  } else if (inlined && w.remote % 8 == 0 && reinterpret_cast<std::uintptr_t>(there->at) % 8 == 0) {
    auto* const word = reinterpret_cast<std::uint64_t*>(there->at);
    if (there->where.asleep)
      store_and_wake(word, w.word, reinterpret_cast<std::uint32_t*>(there->where.asleep) + id_ - 1);
    else
      std::atomic_ref(*word).store(w.word, std::memory_order_release);
  } else if (inlined) {
    std::memcpy(there->at, &w.word, 8);
  } else if (bytes != 0) {
    std::memcpy(there->at, local, bytes);
  }
  if (w.what == verb::write_with_immediate &&
      !memory_->deliver(q.peer_nic, q.peer_queue, w.immediate))
    return nic_status::receiver_not_ready;
  return nic_status::ok;
}

// Completions of a queue come in its order; those of different queues do not. An unsignalled
// success shows in the next one that is signalled.
bool emulated_nic::complete(queue_state& q) {
  bool any = false;
  while (!q.failed && !q.pending.empty() && q.pending.front().done && !q.pending.front().lost) {
    operation& o = q.pending.front();
    if (o.turns_left > 0) {
      --o.turns_left;
      return true;
    }
    bool const failed = o.status != nic_status::ok;
    if ((o.what.signalled || failed) && !write_completion(q, {o.index, o.status, o.opcode}))
      return any;
    q.pending.pop_front();
    any = true;
    if (!failed) continue;
    q.failed = true;
    for (operation const& left : q.pending) {
      bool const one = q.reader->flushes_each() || &left == &q.pending.front();
      if (one) write_completion(q, {left.index, nic_status::flushed, left.opcode});
    }
    q.pending.clear();
  }
  return any;
}

bool emulated_nic::write_completion(queue_state& q, ending const& e) {
  std::uint32_t read = q.read;
  refusal r = q.reader->consumed(q.read, read);
  if (r == refusal::none && static_cast<std::int32_t>(q.position - read) < 0)
    r = refusal::consumer_malformed;
  if (r == refusal::none) {
    q.read = read;
    // With as many completions as entries, whoever takes too few has posted too many.
    if (q.position - q.read >= q.pair.num_completions) r = refusal::completion_overrun;
  }
  if (r != refusal::none) {
    refusals_.push_back({r, q.pair.number, e.index});
    q.failed = true;
    q.pending.clear();
    return false;
  }
  q.reader->complete(q.position++, e);
  ++counts_.completions;
  return true;
}

// A queue whose entries make no sense ends with an error for the entry, as a real one does.
void emulated_nic::refuse(queue_state& q, refusal why, std::uint32_t index) {
  refusals_.push_back({why, q.pair.number, index});
  operation broken{.index = index, .done = true, .status = nic_status::local_operation};
  q.refused = true;
  q.pending.push_back(broken);
}

}  // namespace ferry::test
