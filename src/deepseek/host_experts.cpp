// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "deepseek/host_experts.hpp"

#include <ferry/base/number_formats.hpp>

#include "base/fail.hpp"

#include <cstring>
#include <new>
#include <utility>

namespace ferry::deepseek {
namespace {

/// Numbers of the compute type as bytes; exact, since they were rounded to it before.
void narrow(std::vector<float> const& from, dtype type, std::byte* to) {
  if (type == dtype::f32) {
    std::memcpy(to, from.data(), from.size() * sizeof(float));
    return;
  }
  for (float const x : from) {
    bf16 const code = from_float<bf16>(x);
    std::memcpy(to, &code, sizeof code);
    to += sizeof code;
  }
}
std::vector<float> widened(std::byte const* from, dtype type, std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  if (type == dtype::f32) {
    std::memcpy(values.data(), from, values.size() * sizeof(float));
    return values;
  }
  for (float& x : values) {
    bf16 code;
    std::memcpy(&code, from, sizeof code);
    x = to_float(code);
    from += sizeof code;
  }
  return values;
}

}  // namespace

host_experts::host_experts(std::vector<moe_layer*> layers, expert_form const& form, int spare_slots)
    : layers_(std::move(layers)),
      form_(form),
      staged_(static_cast<std::size_t>(spare_slots)),
      unpacked_(form.bytes()) {}

result<mlp*> host_experts::at(own_slot s) {
  if (s.layer >= 0 && s.layer < std::ssize(layers_)) {
    experts& all = layers_[static_cast<std::size_t>(s.layer)]->local_experts();
    if (s.slot >= 0 && s.slot < all.size()) return &all.in_slot(s.slot);
  }
  return fail(error_code::invalid_argument, "slot {} of layer {} does not exist", s.slot, s.layer);
}

result<void> host_experts::unpack(mlp const& from) try {
  std::vector<float> values(static_cast<std::size_t>(2 * form_.width * form_.hidden));
  FERRY_CHECK(from.gate_and_up().unpack(dense(values.data(), 2 * form_.width, form_.hidden)));
  narrow(values, form_.compute, unpacked_.data());
  values.resize(static_cast<std::size_t>(form_.width * form_.hidden));
  FERRY_CHECK(from.down().unpack(dense(values.data(), form_.hidden, form_.width)));
  narrow(values, form_.compute, unpacked_.data() + form_.up_bytes());
  std::uint64_t const flag = from.down().options().quantise_input;
  std::memcpy(unpacked_.data() + form_.flag_offset(), &flag, sizeof flag);
  return {};
} catch (std::bad_alloc const&) {
  return fail(error_code::out_of_memory, "no memory to unpack an expert of {} bytes",
              form_.bytes());
}

result<void> host_experts::copy(std::size_t offset, std::span<std::byte> to) const {
  if (offset > unpacked_.size() || to.size() > unpacked_.size() - offset)
    return fail(error_code::invalid_argument, "bytes {} to {} of an expert of {}", offset,
                offset + to.size(), unpacked_.size());
  std::memcpy(to.data(), unpacked_.data() + offset, to.size());
  return {};
}

result<void> host_experts::read(own_slot from, std::size_t offset, std::span<std::byte> to) {
  bool const is_there =
      unpacked_slot_ && unpacked_slot_->layer == from.layer && unpacked_slot_->slot == from.slot;
  if (!is_there) {
    FERRY_TRY(mlp* const expert, at(from));
    unpacked_slot_.reset();
    unpacked_spare_.reset();
    FERRY_CHECK(unpack(*expert));
    unpacked_slot_ = from;
  }
  return copy(offset, to);
}

result<void> host_experts::stage(int spare, own_slot where, std::span<std::byte const> weights) {
  FERRY_TRY(mlp* const present, at(where));
  if (spare < 0 || spare >= spare_slots() || weights.size() != form_.bytes())
    return fail(error_code::invalid_argument, "{} bytes of an expert of {} for spare slot {} of {}",
                weights.size(), form_.bytes(), spare, spare_slots());
  linear_options options = present->down().options();
  std::uint64_t flag = 0;
  std::memcpy(&flag, weights.data() + form_.flag_offset(), sizeof flag);
  options.quantise_input = flag != 0;
  try {
    auto const up = widened(weights.data(), form_.compute, 2 * form_.width * form_.hidden);
    auto const down =
        widened(weights.data() + form_.up_bytes(), form_.compute, form_.width * form_.hidden);
    FERRY_TRY(mlp made, mlp::make(dense(up.data(), 2 * form_.width, form_.hidden),
                                  dense(down.data(), form_.hidden, form_.width), options));
    if (unpacked_spare_ == spare) unpacked_spare_.reset();
    staged_[static_cast<std::size_t>(spare)] = {where, std::move(made)};
    return {};
  } catch (std::bad_alloc const&) {
    return fail(error_code::out_of_memory, "no memory for an expert of {} bytes", form_.bytes());
  }
}

result<void> host_experts::read_staged(int spare, std::size_t offset, std::span<std::byte> to) {
  if (unpacked_spare_ != spare) {
    if (spare < 0 || spare >= spare_slots() || !staged_[static_cast<std::size_t>(spare)].expert)
      return fail(error_code::invalid_argument, "nothing lies in spare slot {}", spare);
    unpacked_slot_.reset();
    unpacked_spare_.reset();
    FERRY_CHECK(unpack(*staged_[static_cast<std::size_t>(spare)].expert));
    unpacked_spare_ = spare;
  }
  return copy(offset, to);
}

result<void> host_experts::swap() {
  for (staged& s : staged_) {
    if (!s.expert) continue;
    FERRY_TRY(mlp* const slot, at(s.where));
    *slot = std::move(*s.expert);
  }
  discard();
  return {};
}

void host_experts::discard() {
  for (staged& s : staged_) s.expert.reset();
  unpacked_slot_.reset();
  unpacked_spare_.reset();
}

}  // namespace ferry::deepseek
