// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "exchange/expert_tables.hpp"

#include "base/fail.hpp"
#include "exchange/device_rank.hpp"

#include <ferry/memory/layout.hpp>

#include <atomic>
#include <cstring>
#include <numeric>

namespace ferry {
namespace {

enum class field { first, candidates, loads, samples, count_ };

std::size_t size_of(int n) {
  return static_cast<std::size_t>(n);
}

}  // namespace

result<void> expert_tables::make(exchange_options const& options, exchange_shape const& shape,
                                 device const& where, device_rank const* on) {
  on_ = on;
  shape_ = shape;
  slots_ = options.num_microbatches;
  std::size_t const layers = size_of(options.layers);
  std::size_t const ends = size_of(options.num_experts) + 1;
  std::size_t const slots = size_of(shape.experts);
  std::size_t const own = size_of(shape.most_local_experts());
  std::size_t const sampled =
      size_of(slots_ * options.sampled_tokens) * layers * size_of(shape.topk);
  field_layout<field> l;
  l.add(field::first, layers * ends, sizeof(std::int32_t), 64);
  l.add(field::candidates, layers * slots, sizeof(std::int32_t), 64);
  l.add(field::loads, layers * own, sizeof(std::uint64_t), 64);
  l.add(field::samples, sampled, sizeof(std::int32_t), 64);
  if (on) {
    FERRY_TRY(on_device_, where.allocate(memory_kind::local, l.bytes()));
  } else {
    FERRY_TRY(memory_, buffer::allocate(l.bytes()));
  }
  std::byte* const base = on ? on_device_.data() : memory_.data();
  auto const at = [&]<class T>(T*& pointer, field f) {
    pointer = reinterpret_cast<T*>(base + l.offset(f));
  };
  at(map_.first, field::first);
  at(map_.candidates, field::candidates);
  at(map_.loads, field::loads);
  if (sampled > 0) at(map_.samples, field::samples);
  map_.experts = options.num_experts;
  map_.layers = options.layers;
  map_.sampled_tokens = options.sampled_tokens;

  std::vector<std::int32_t> first(layers * ends), candidates(layers * slots), samples(sampled, -1);
  for (std::size_t i = 0; i < layers; ++i) {
    std::iota(first.begin() + static_cast<std::ptrdiff_t>(i * ends),
              first.begin() + static_cast<std::ptrdiff_t>((i + 1) * ends), 0);
    std::iota(candidates.begin() + static_cast<std::ptrdiff_t>(i * slots),
              candidates.begin() + static_cast<std::ptrdiff_t>((i + 1) * slots), 0);
  }
  FERRY_CHECK(copy_in(map_.first, first.data(), first.size() * sizeof first[0]));
  FERRY_CHECK(copy_in(map_.candidates, candidates.data(), candidates.size() * sizeof first[0]));
  return copy_in(map_.samples, samples.data(), samples.size() * sizeof first[0]);
}

result<void> expert_tables::copy_in(void const* to, void const* from, std::size_t bytes) {
  if (bytes == 0) return {};
  void* const there = const_cast<void*>(to);
  if (on_) return on_->write(there, from, bytes);
  std::memcpy(there, from, bytes);
  return {};
}

result<void> expert_tables::check(std::span<expert_table const> tables) const {
  std::vector<bool> seen(size_of(map_.layers));
  for (expert_table const& t : tables) {
    if (t.layer < 0 || t.layer >= map_.layers || seen[size_of(t.layer)])
      return fail(error_code::invalid_argument, "a table for layer {} {}", t.layer,
                  t.layer < 0 || t.layer >= map_.layers
                      ? "of an exchange with another number of layers"
                      : "stands there twice");
    seen[size_of(t.layer)] = true;
    if (t.first.size() != size_of(map_.experts) + 1 ||
        t.candidates.size() > size_of(shape_.experts))
      return fail(error_code::invalid_argument,
                  "layer {}: {} ends and {} candidates for {} experts in {} slots", t.layer,
                  t.first.size(), t.candidates.size(), map_.experts, shape_.experts);
    if (t.first.front() != 0 || t.first.back() != std::ssize(t.candidates))
      return fail(error_code::invalid_argument, "layer {}: candidates {} to {} of {}", t.layer,
                  t.first.front(), t.first.back(), t.candidates.size());
    for (std::size_t e = 0; e + 1 < t.first.size(); ++e)
      if (t.first[e] >= t.first[e + 1])
        return fail(error_code::invalid_argument, "layer {}: no slot serves expert {}", t.layer, e);
    for (std::size_t e = 0; e + 1 < t.first.size(); ++e)
      for (std::int32_t i = t.first[e]; i < t.first[e + 1]; ++i) {
        std::int32_t const slot = t.candidates[size_of(i)];
        bool const lost = slot == -1 && t.first[e + 1] == t.first[e] + 1;
        if (!lost && (slot < 0 || slot >= shape_.experts))
          return fail(error_code::invalid_argument, "layer {}: slot {} of {}", t.layer, slot,
                      shape_.experts);
      }
  }
  return {};
}

result<void> expert_tables::write(std::span<expert_table const> tables) {
  FERRY_CHECK(check(tables));
  for (expert_table const& t : tables) {
    std::size_t const layer = size_of(t.layer);
    FERRY_CHECK(copy_in(map_.first + layer * (size_of(map_.experts) + 1), t.first.data(),
                        t.first.size_bytes()));
    FERRY_CHECK(copy_in(map_.candidates + layer * size_of(shape_.experts), t.candidates.data(),
                        t.candidates.size_bytes()));
  }
  return {};
}

result<std::vector<std::uint64_t>> expert_tables::loads() const {
  std::size_t const most = size_of(shape_.most_local_experts());
  std::size_t const own = size_of(shape_.local_experts(shape_.rank));
  std::vector<std::uint64_t> all(size_of(map_.layers) * most);
  if (on_) {
    FERRY_CHECK(on_->read(all.data(), map_.loads, all.size() * sizeof all[0]));
  } else {
    // Other threads may be running steps.
    for (std::size_t i = 0; i < all.size(); ++i)
      all[i] = std::atomic_ref(map_.loads[i]).load(std::memory_order_relaxed);
  }
  std::vector<std::uint64_t> dense;
  for (std::size_t layer = 0; layer < size_of(map_.layers); ++layer)
    dense.insert(dense.end(), all.begin() + static_cast<std::ptrdiff_t>(layer * most),
                 all.begin() + static_cast<std::ptrdiff_t>(layer * most + own));
  return dense;
}

std::size_t expert_tables::samples_of_slot() const {
  return size_of(map_.sampled_tokens) * size_of(map_.layers) * size_of(shape_.topk);
}

expert_map expert_tables::view(int slot) const {
  expert_map mine = map_;
  if (mine.samples) mine.samples += size_of(slot) * samples_of_slot();
  return mine;
}

result<std::vector<std::int32_t>> expert_tables::take_samples() {
  std::vector<std::int32_t> all(size_of(slots_) * samples_of_slot());
  if (all.empty()) return all;
  if (on_) {
    FERRY_CHECK(on_->read(all.data(), map_.samples, all.size() * sizeof all[0]));
  } else {
    std::memcpy(all.data(), map_.samples, all.size() * sizeof all[0]);
  }
  // A slot that the next step does not use would show its last step again.
  std::vector<std::int32_t> const none(all.size(), -1);
  FERRY_CHECK(copy_in(map_.samples, none.data(), none.size() * sizeof none[0]));
  return all;
}

}  // namespace ferry
