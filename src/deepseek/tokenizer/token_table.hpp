// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The bytes of every token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ferry::deepseek {

/// Ids need not be dense. 8 bytes a token and its text.
class token_table {
 public:
  /// Ids are small numbers in every vocabulary; the table has a place for each below the largest.
  static constexpr std::int32_t max_id = (1 << 22) - 1;

  bool has(std::int32_t id) const {
    return id >= 0 && id < num_ids() && places_[static_cast<std::size_t>(id)].begin != absent;
  }
  /// Of a token that is there.
  std::string_view bytes(std::int32_t id) const {
    auto& at = places_[static_cast<std::size_t>(id)];
    return std::string_view(text_).substr(at.begin, at.bytes);
  }
  bool is_special(std::int32_t id) const {
    return has(id) && special_[static_cast<std::size_t>(id)];
  }
  std::int32_t num_ids() const { return static_cast<std::int32_t>(places_.size()); }

  /// `id` in 0..max_id; what it meant before is forgotten.
  void set(std::int32_t id, std::string_view bytes, bool special) {
    auto at = static_cast<std::size_t>(id);
    if (at >= places_.size()) {
      places_.resize(at + 1);
      special_.resize(at + 1);
    }
    places_[at] = {static_cast<std::uint32_t>(text_.size()),
                   static_cast<std::uint32_t>(bytes.size())};
    special_[at] = special;
    text_ += bytes;
  }

 private:
  static constexpr std::uint32_t absent = ~std::uint32_t{0};
  struct place {
    std::uint32_t begin = absent, bytes = 0;
  };
  std::string text_;
  std::vector<place> places_;
  std::vector<bool> special_;
};

}  // namespace ferry::deepseek
