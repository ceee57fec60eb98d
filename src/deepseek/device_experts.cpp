// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "deepseek/device_experts.hpp"

#include "base/fail.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace ferry::deepseek {
namespace {

constexpr std::size_t bounce_bytes = std::size_t{1} << 20;

}  // namespace

result<std::unique_ptr<device_experts>> device_experts::make(device const& where,
                                                             std::vector<device_moe const*> layers,
                                                             expert_form const& form,
                                                             int spare_slots,
                                                             std::chrono::milliseconds timeout) {
  FERRY_TRY(queue copies, queue::on(where));
  std::unique_ptr<device_experts> made(
      new device_experts(std::move(copies), std::move(layers), form, spare_slots, timeout));
  FERRY_TRY(made->spares_,
            where.allocate(memory_kind::local,
                           static_cast<std::size_t>(spare_slots) * form.flag_offset()));
  FERRY_TRY(made->bounce_, where.allocate(memory_kind::pinned, bounce_bytes));
  return made;
}

result<device_experts::place> device_experts::at(own_slot s) const {
  if (s.layer >= 0 && s.layer < std::ssize(layers_)) {
    device_mlp const& all = layers_[static_cast<std::size_t>(s.layer)]->experts;
    if (s.slot >= 0 && s.slot < all.down.groups())
      return place{all.gate_and_up.group(s.slot).data(), all.down.group(s.slot).data(),
                   all.down.quantises_input()};
  }
  return fail(error_code::invalid_argument, "slot {} of layer {} does not exist", s.slot, s.layer);
}

device_experts::place device_experts::spare(int index) const {
  std::byte* const first = spares_.data() + static_cast<std::size_t>(index) * form_.flag_offset();
  return {first, first + form_.up_bytes(), 0};
}

result<void> device_experts::transfer(void* to, void const* from, std::size_t bytes) {
  FERRY_CHECK(copies_.copy(to, from, bytes));
  return copies_.wait(2 * timeout_);
}

result<void> device_experts::fetch(place const& from, std::size_t offset, std::span<std::byte> to) {
  if (offset > form_.bytes() || to.size() > form_.bytes() - offset)
    return fail(error_code::invalid_argument, "bytes {} to {} of an expert of {}", offset,
                offset + to.size(), form_.bytes());
  while (!to.empty()) {
    if (offset >= form_.flag_offset()) {
      std::byte word[sizeof from.flag];
      std::memcpy(word, &from.flag, sizeof word);
      std::memcpy(to.data(), word + (offset - form_.flag_offset()), to.size());
      return {};
    }
    bool const in_up = offset < form_.up_bytes();
    std::byte const* const begin =
        in_up ? from.up + offset : from.down + (offset - form_.up_bytes());
    std::size_t const size = std::min(
        {to.size(), bounce_bytes, (in_up ? form_.up_bytes() : form_.flag_offset()) - offset});
    FERRY_CHECK(transfer(bounce_.data(), begin, size));
    std::memcpy(to.data(), bounce_.data(), size);
    to = to.subspan(size);
    offset += size;
  }
  return {};
}

result<void> device_experts::read(own_slot from, std::size_t offset, std::span<std::byte> to) {
  FERRY_TRY(place const there, at(from));
  return fetch(there, offset, to);
}

result<void> device_experts::stage(int spare_slot, own_slot where,
                                   std::span<std::byte const> weights) {
  FERRY_TRY(place const slot, at(where));
  if (spare_slot < 0 || spare_slot >= spare_slots() || weights.size() != form_.bytes())
    return fail(error_code::invalid_argument, "{} bytes of an expert of {} for spare slot {} of {}",
                weights.size(), form_.bytes(), spare_slot, spare_slots());
  std::uint64_t flag = 0;
  std::memcpy(&flag, weights.data() + form_.flag_offset(), sizeof flag);
  if (flag != slot.flag)
    return fail(error_code::unsupported,
                "an expert whose inputs are {}rounded to fp8 among others of layer {}",
                flag ? "" : "not ", where.layer);
  std::byte* const to = spare(spare_slot).up;  // down follows
  for (std::size_t done = 0; done < form_.flag_offset();) {
    std::size_t const size = std::min(bounce_bytes, form_.flag_offset() - done);
    std::memcpy(bounce_.data(), weights.data() + done, size);
    FERRY_CHECK(transfer(to + done, bounce_.data(), size));
    done += size;
  }
  staged_[static_cast<std::size_t>(spare_slot)] = {true, where};
  return {};
}

result<void> device_experts::read_staged(int spare_slot, std::size_t offset,
                                         std::span<std::byte> to) {
  if (spare_slot < 0 || spare_slot >= spare_slots() ||
      !staged_[static_cast<std::size_t>(spare_slot)].used)
    return fail(error_code::invalid_argument, "nothing lies in spare slot {}", spare_slot);
  FERRY_TRY(place const slot, at(staged_[static_cast<std::size_t>(spare_slot)].where));
  place from = spare(spare_slot);
  from.flag = slot.flag;
  return fetch(from, offset, to);
}

result<void> device_experts::swap() {
  for (std::size_t i = 0; i < staged_.size(); ++i) {
    if (!std::exchange(staged_[i].used, false)) continue;
    FERRY_TRY(place const to, at(staged_[i].where));
    place const from = spare(static_cast<int>(i));
    FERRY_CHECK(copies_.copy(to.up, from.up, form_.up_bytes()));
    FERRY_CHECK(copies_.copy(to.down, from.down, form_.down_bytes()));
  }
  return copies_.wait(2 * timeout_);
}

void device_experts::discard() {
  for (staged& s : staged_) s.used = false;
}

}  // namespace ferry::deepseek
