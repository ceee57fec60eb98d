// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// What ran when, on all ranks: recorded in fixed buffers, written as JSON or drawn.
#pragma once

#include <ferry/exec/trace.hpp>
#include <ferry/ferry.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ferry::decode {

/// Writes down every stage where it runs: marks are put on the queue before and after it, so a
/// captured step is recorded at each replay.
class stage_recorder : public stage_watcher {
 public:
  /// Lifetime the lists of stages must outlive the recorder
  stage_recorder(std::span<stage_list const> lists, std::size_t capacity);

  /// Number of the step that is put or launched next, and what it is part of: "prefill" or
  /// "decode". The last one has run.
  void begin_step(char const* phase, int number) {
    phase_ = phase;
    step_ = number;
  }

  result<void> before(queue& q, int microbatch, stage const& s) override;
  result<void> after(queue& q, int microbatch, stage const& s) override;

  trace const& recorded() const { return trace_; }

 private:
  struct mark {
    stage_recorder* of = nullptr;
    trace_span span;
  };
  mark& mark_of(int microbatch, stage const& s);

  std::span<stage_list const> lists_;
  std::vector<std::vector<mark>> marks_;
  trace trace_;
  char const* phase_ = "";
  int step_ = 0;
};

/// A span of some rank.
struct rank_span {
  int rank = 0;
  std::string name;
  int queue = 0;  ///< 0 compute, 1 communication
  int microbatch = 0;
  int layer = -1;
  int step = 0;
  std::int64_t begin_ns = 0, end_ns = 0;
  std::string phase = "decode";
};

/// Brings the spans of all ranks to rank 0; on the others the result is empty. Collective.
result<std::vector<rank_span>> gather_spans(group const& ranks, trace const& mine);

/// Chrome's and Perfetto's JSON: a process per rank, a track per queue.
/// Errors   io
result<void> write_trace(std::vector<rank_span> const& spans, std::filesystem::path const& file);

/// One decode step of all ranks as a picture: the one whose length is the median of those recorded.
/// Errors   io; invalid_state no such step was recorded
result<void> write_timeline(std::vector<rank_span> const& spans, std::filesystem::path const& file);
/// The picture itself.
std::string timeline_of(std::vector<rank_span> const& spans);

}  // namespace ferry::decode
