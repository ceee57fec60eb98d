// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// One connection to one peer, on which frames travel.
#pragma once

#include <ferry/base/result.hpp>
#include <ferry/group/bootstrap.hpp>

#include "group/deadline.hpp"
#include "memory/descriptor.hpp"

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

namespace ferry {

/// What a frame is for.
enum class frame_kind : std::uint32_t {
  hello = 1,  ///< to rank 0: who I am
  welcome,    ///< from rank 0: you are in, wait for the others
  table,      ///< from rank 0: where everybody listens
  greeting,   ///< between two others: who I am
  data,       ///< bytes of a collective
  goodbye,    ///< I leave, with the error that made me, if any
  challenge,  ///< from rank 0: show that you know the secret
  proof,      ///< to rank 0: here
  survivors,  ///< who goes on when the group is made anew; the number is that of the rebuild
};

struct frame {
  frame_kind kind = frame_kind::hello;
  std::uint64_t number = 0;  ///< data: which collective
  bytes payload;
};

/// Most bytes of one frame.
inline constexpr std::size_t max_frame_bytes = std::size_t{64} << 20;
/// Most bytes of a frame from somebody who has not shown who he is.
inline constexpr std::size_t max_stranger_bytes = 4096;

/// Nothing here blocks: `read` takes what is there, `write` gives what fits. Any thread may call.
class link {
 public:
  explicit link(descriptor socket, std::size_t limit = max_frame_bytes);

  int socket() const { return socket_.number(); }
  /// here; left after a goodbye; gone after an end or a breach of the format.
  presence peer() const { return peer_; }
  /// Why the peer is not here any more, as one rank tells it of another.
  error farewell(int rank) const;
  /// The same from a peer that left before it took this rank in.
  error refusal(int rank) const;
  /// The goodbye said why.
  bool explained() const;
  /// The peer sent what no rank sends.
  bool breached() const;
  /// The peer takes part in nothing any more, for certain: it left, or its kernel closed the
  /// connection, as it does when a process ends. A network that broke proves nothing, nor does a
  /// reset between machines: a kernel also resets a connection that it has given up.
  bool has_ended() const;
  void distrust(std::string why);

  void trust();
  void read();
  /// The next whole frame, but goodbyes. A stranger's second frame is looked at when it is asked
  /// for, so that trust can come between the two.
  std::optional<frame> next();

  void queue(frame_kind kind, std::uint64_t number, std::shared_ptr<bytes const> payload);
  void queue(frame_kind kind, bytes payload);
  void write();
  bool wants_to_write() const;

  /// Says goodbye, unless the line is clogged, and closes this direction.
  void leave(result<void> const& why);

  /// As `presence peer()`, after one look at the socket.
  presence look();
  /// Gives up a peer whose machine answers nothing any more.
  void end_if_silent();

 private:
  struct outgoing {
    bytes head;
    std::shared_ptr<bytes const> payload;
    std::size_t sent = 0;
  };
  void end(presence how, std::string why, bool for_certain);
  bool takes_more() const;
  void parse();
  void breach(std::string why);
  void write_locked();

  descriptor const socket_;
  std::atomic<std::size_t> limit_;
  std::atomic<presence> peer_ = presence::here;
  mutable std::mutex guard_;
  bytes unread_;
  std::size_t parsed_ = 0;
  std::deque<frame> frames_;
  std::deque<outgoing> outgoing_;
  std::string why_;
  std::optional<error> reason_;
  bool closed_ = false;
  bool breached_ = false;
  bool ended_ = false;
  bool local_ = false;  ///< both ends are on this machine
  bool reset_ = false;
};

/// Waits until something moves on the links or at the listener (-1: none), and moves it.
/// Returns  whether somebody waits at the listener
result<bool> move_frames(std::span<link* const> links, int listener, deadline end);

}  // namespace ferry
