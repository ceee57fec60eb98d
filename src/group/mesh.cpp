// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "group/mesh.hpp"

#include "base/fail.hpp"
#include "group/packed.hpp"

#include <memory>

namespace ferry {
namespace {

/// Another thread's look may take a peer's last words from under a wait.
constexpr std::chrono::milliseconds turn{50};

bytes packed(survivors_word const& word) {
  packer to;
  std::uint32_t count = 0;
  for (bool const out : word.out) count += out;
  to.add(count);
  for (std::size_t r = 0; r < word.out.size(); ++r)
    if (word.out[r]) to.add(static_cast<std::int32_t>(r));
  return to.packed();
}

/// Nothing when the bytes are none, or name ranks that there are not.
std::optional<survivors_word> unpacked(frame const& got, int size) {
  if (got.number > max_rebuilds) return std::nullopt;
  survivors_word word{got.number, std::vector<bool>(static_cast<std::size_t>(size))};
  unpacker from{got.payload};
  auto const count = from.take<std::uint32_t>();
  for (std::uint32_t i = 0; i < count && from.complete(); ++i) {
    auto const rank = from.take<std::int32_t>();
    if (rank < 0 || rank >= size) return std::nullopt;
    word.out[static_cast<std::size_t>(rank)] = true;
  }
  return from.complete() ? std::optional(std::move(word)) : std::nullopt;
}

}  // namespace

void mesh::use() {
  std::lock_guard const lock(guard_);
  ++users_;
}

void mesh::give_up(result<void> const& why) {
  std::lock_guard const lock(guard_);
  if (--users_ > 0) return;
  for (auto const& line : lines_)
    if (line) line->leave(why);
}

void mesh::take_what_came() {
  for (int r = 0; r < size(); ++r) {
    if (!line(r)) continue;
    while (auto got = line(r)->next()) {
      if (got->kind == frame_kind::survivors)
        hear(r, *got);
      else
        data_[static_cast<std::size_t>(r)].push_back(*std::move(got));
    }
  }
}

void mesh::hear(int rank, frame const& got) {
  auto word = unpacked(got, size());
  if (!word)
    return line(rank)->distrust(
        fmt::format("its word on who goes on has {} bytes", got.payload.size()));
  who_.hear(rank, *std::move(word));
}

std::optional<frame> mesh::next(int rank, std::uint64_t rebuild) {
  auto& waiting = data_[static_cast<std::size_t>(rank)];
  while (!waiting.empty() && waiting.front().number >> rebuild_shift < rebuild) waiting.pop_front();
  if (waiting.empty() || waiting.front().number >> rebuild_shift > rebuild) return std::nullopt;
  auto first = std::move(waiting.front());
  waiting.pop_front();
  return first;
}

void mesh::look(survivors& who) {
  // All that is there: who has come already is not lost.
  for (int r = 0; r < size(); ++r)
    if (line(r)) line(r)->read();
  take_what_came();
  for (int r = 0; r < size(); ++r) {
    if (!line(r) || line(r)->peer() == presence::here) continue;
    who.lose_sight_of(r);
    if (line(r)->has_ended()) who.bury(r);
  }
}

void mesh::say(survivors_word const& word) {
  auto const payload = std::make_shared<bytes const>(packed(word));
  for (auto const& line : lines_) {
    if (!line) continue;
    line->queue(frame_kind::survivors, word.rebuild, payload);
    line->write();
  }
}

result<void> mesh::wait(deadline end) {
  std::vector<link*> open;
  for (auto const& line : lines_)
    if (line) open.push_back(line.get());
  FERRY_TRY(bool const nobody, move_frames(open, -1, std::min(end, after(turn))));
  static_cast<void>(nobody);
  return {};
}

}  // namespace ferry
