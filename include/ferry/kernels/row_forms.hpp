// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Which form of rows a kernel takes on teams of many lanes: the host's choice, before a launch.
///
/// The forms in registers want bf16 or finished rows, at multiples of 16 bytes. Everything else is
/// right too, but goes through memory.
#pragma once

#include <ferry/kernels/copied_rows.hpp>
#include <ferry/kernels/gather.hpp>
#include <ferry/kernels/give_back.hpp>
#include <ferry/kernels/quantised_rows.hpp>
#include <ferry/kernels/send.hpp>

#include <cstddef>
#include <cstdint>

namespace ferry {

enum class send_form : std::uint8_t { memory, copied, e4m3, e4m3fnuz, power, both };
enum class return_form : std::uint8_t { memory, bf16 };
enum class gather_form : std::uint8_t { memory, bf16 };

/// Whether lanes can move rows at this address, with this stride, in pieces.
inline bool in_pieces(void const* data, std::int64_t stride, std::size_t row_bytes) {
  return reinterpret_cast<std::uintptr_t>(data) % sizeof(piece) == 0 &&
         stride % static_cast<std::int64_t>(sizeof(piece)) == 0 && row_bytes % sizeof(piece) == 0;
}

inline send_form form_of(send_rows const& k, int lanes) {
  exchange_shape const& s = k.frame.shape;
  std::size_t const bytes =
      s.sent == wire::opaque ? s.row_bytes : static_cast<std::size_t>(s.hidden) * bytes_of(k.type);
  if (!in_pieces(k.tokens, k.token_stride, bytes)) return send_form::memory;
  if (s.sent == wire::opaque || element_of(s.sent) == k.type) {
    bool const words = reinterpret_cast<std::uintptr_t>(k.scales) % 4 == 0 &&
                       k.scale_stride % 4 == 0 && s.scale_bytes % 4 == 0;
    bool const few = s.scale_bytes <= static_cast<std::size_t>(4 * 4 * lanes);
    return words && few ? send_form::copied : send_form::memory;
  }
  if (k.type != dtype::bf16 || s.hidden % scale_block != 0) return send_form::memory;
  if (s.sends_both()) return send_form::both;
  switch (s.sent) {
    case wire::fp8_e4m3: return send_form::e4m3;
    case wire::fp8_e4m3fnuz: return send_form::e4m3fnuz;
    case wire::fp8_ue8m0: return send_form::power;
    default: return send_form::memory;
  }
}

inline return_form form_of(return_rows const& k) {
  exchange_shape const& s = k.frame.shape;
  return k.type == dtype::bf16 && s.returned == wire::bf16 && !k.summed &&
                 in_pieces(k.rows, k.row_stride, s.home_bytes)
             ? return_form::bf16
             : return_form::memory;
}

inline gather_form form_of(gather_rows const& k) {
  exchange_shape const& s = k.frame.shape;
  return k.type == dtype::bf16 && s.returned == wire::bf16 &&
                 in_pieces(k.output, k.output_stride, s.home_bytes) &&
                 in_pieces(k.added, k.added_stride, s.home_bytes)
             ? gather_form::bf16
             : gather_form::memory;
}

/// bf16 rows quantised, with each kind of scales.
template <team Team>
using quantised_e4m3 = quantised_rows<e4m3_codes, Team>;
template <team Team>
using quantised_e4m3fnuz = quantised_rows<e4m3fnuz_codes, Team>;
template <team Team>
using quantised_power = quantised_rows<power_scaled_codes, Team>;
/// And for receivers of both flavours, each in its own.
template <team Team>
using quantised_both = quantised_rows<e4m3_codes, Team, e4m3fnuz_codes>;

}  // namespace ferry
