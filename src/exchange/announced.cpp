// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "exchange/announced.hpp"

#include "base/fail.hpp"
#include "group/packed.hpp"

namespace ferry {
namespace {

// And how it reads where the bytes of a number lie the other way round.
constexpr std::uint64_t byte_order_mark = 0x0102030405060708;
constexpr std::uint64_t other_order_mark = 0x0807060504030201;

char const* to_string(fp8_code code) {
  return code == fp8_code::ocp ? "OCP" : code == fp8_code::fnuz ? "FNUZ" : "either kind";
}

}  // namespace

fp8_code flavour_of(device const& where, fp8_flavour wanted) {
  if (wanted == fp8_flavour::either) return fp8_code::either;
  if (wanted == fp8_flavour::ocp) return fp8_code::ocp;
  if (wanted == fp8_flavour::fnuz || where.fp8_is_fnuz()) return fp8_code::fnuz;
  return where.kind() == device_kind::cuda ? fp8_code::ocp : fp8_code::either;
}

bytes packed(announced const& rank) {
  return packer()
      .add(byte_order_mark)
      .add(static_cast<std::int32_t>(rank.kind))
      .add(std::int32_t{rank.lanes})
      .add(static_cast<std::int32_t>(rank.fp8))
      .packed();
}

result<announced> unpacked(std::span<std::byte const> from, int rank, int reader) {
  unpacker in(from);
  auto const mark = in.take<std::uint64_t>();
  if (mark == other_order_mark)
    return fail(error_code::unsupported,
                "rank {} orders the bytes of a number the other way round than rank {}: rows and "
                "flags would be misread",
                rank, reader);
  auto const kind = in.take<std::int32_t>();
  auto const lanes = in.take<std::int32_t>();
  auto const fp8 = in.take<std::int32_t>();
  if (!in.complete() || mark != byte_order_mark)
    return fail(error_code::invalid_argument, "rank {} makes another exchange at the same time",
                rank);
  if (kind < 0 || kind > static_cast<int>(device_kind::emulated) || lanes < 1)
    return fail(error_code::unsupported,
                "rank {} is on a device of kind {} with {} lanes, which rank {} knows nothing of",
                rank, kind, lanes, reader);
  if (fp8 < 0 || fp8 > static_cast<int>(fp8_code::fnuz))
    return fail(error_code::unsupported,
                "rank {} reads fp8 of flavour {}, which rank {} cannot make: it knows 0 to {}",
                rank, fp8, reader, static_cast<int>(fp8_code::fnuz));
  return announced{static_cast<device_kind>(kind), lanes, static_cast<fp8_code>(fp8)};
}

result<std::vector<announced>> announce(group const& ranks, announced const& mine) {
  FERRY_TRY(auto const gathered, ranks.all_gather(packed(mine)));
  std::vector<announced> all;
  result<void> known;
  for (int r = 0; r < ranks.size() && known; ++r) {
    result<announced> const theirs =
        unpacked(gathered[static_cast<std::size_t>(r)], r, ranks.rank());
    if (theirs)
      all.push_back(*theirs);
    else
      known = theirs.error();
  }
  FERRY_CHECK(ranks.agree(known));
  return all;
}

result<void> check_announced(std::span<announced const> all, exchange_options const& options,
                             int reader) {
  announced const& own = all[static_cast<std::size_t>(reader)];
  for (std::size_t r = 0; r < all.size(); ++r)
    if (all[r].kind != own.kind)
      return fail(error_code::invalid_argument,
                  "the kind of device is {} on rank {} (teams of {} lanes, fp8 of {}), but {} on "
                  "rank {} (teams of {} lanes, fp8 of {}): no transport joins the two",
                  to_string(own.kind), reader, own.lanes, to_string(own.fp8),
                  to_string(all[r].kind), r, all[r].lanes, to_string(all[r].fp8));
  bool const out = options.wire == wire::fp8_e4m3fnuz;
  if (!out && options.combine_wire != wire::fp8_e4m3fnuz) return {};
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (all[r].fp8 != fp8_code::ocp) continue;
    std::size_t other = 0;  // whom it would hear from
    while (other + 1 < all.size() && (other == r || all[other].fp8 == fp8_code::ocp)) ++other;
    return fail(
        error_code::unsupported,
        "{} is fp8_e4m3fnuz, which rank {} would get from rank {}, but its fp8 is OCP: with "
        "fp8_e4m3 each rank gets its own kind",
        out ? "wire" : "combine_wire", r, other);
  }
  return {};
}

}  // namespace ferry
