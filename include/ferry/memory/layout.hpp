// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Sizes and offsets of a block of memory from ONE list of its fields.
#pragma once

#include <ferry/base/types.hpp>

#include <array>
#include <cstddef>

namespace ferry {

/// Where each field of an enumeration `Field` (whose last value is `count_`) lies. A field is an
/// array of `items` items, `stride` bytes apart.
template <class Field>
class field_layout {
 public:
  struct place {
    std::size_t offset = 0;
    std::size_t stride = 0;
    std::size_t items = 0;
  };

  /// Appends a field, its start aligned to `align` bytes (a power of two).
  constexpr void add(Field field, std::size_t items, std::size_t stride, std::size_t align) {
    place& p = places_[static_cast<std::size_t>(field)];
    p = {round_up(bytes_, align), stride, items};
    bytes_ = p.offset + items * stride;
  }
  /// Puts a field into each item of `other`, `from` bytes from the item's start.
  constexpr void add_within(Field field, Field other, std::size_t from) {
    place const& whole = (*this)[other];
    places_[static_cast<std::size_t>(field)] = {whole.offset + from, whole.stride, whole.items};
  }

  FERRY_FN constexpr std::size_t offset(Field field, std::size_t item = 0) const {
    place const& p = places_[static_cast<std::size_t>(field)];
    return p.offset + item * p.stride;
  }
  FERRY_FN constexpr std::size_t stride(Field field) const {
    return places_[static_cast<std::size_t>(field)].stride;
  }
  constexpr place const& operator[](Field field) const {
    return places_[static_cast<std::size_t>(field)];
  }
  /// Bytes of all fields together, from 0.
  constexpr std::size_t bytes() const { return bytes_; }

 private:
  std::array<place, static_cast<std::size_t>(Field::count_)> places_{};
  std::size_t bytes_ = 0;
};

}  // namespace ferry
