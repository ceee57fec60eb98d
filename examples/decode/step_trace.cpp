// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "step_trace.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <fstream>

namespace ferry::decode {

stage_recorder::stage_recorder(std::span<stage_list const> lists, std::size_t capacity)
    : lists_(lists), trace_(capacity) {
  for (std::size_t m = 0; m < lists.size(); ++m) {
    marks_.emplace_back();
    for (stage const& s : lists[m])
      marks_.back().push_back(
          {this,
           {.name = s.name,
            .queue = static_cast<std::int16_t>(s.on == stage_kind::compute ? 0 : 1),
            .microbatch = static_cast<std::int16_t>(m),
            .layer = s.layer}});
  }
}

stage_recorder::mark& stage_recorder::mark_of(int microbatch, stage const& s) {
  auto const m = static_cast<std::size_t>(microbatch);
  return marks_[m][static_cast<std::size_t>(&s - lists_[m].data())];
}

result<void> stage_recorder::before(queue& q, int microbatch, stage const& s) {
  return q.run([m = &mark_of(microbatch, s)]() -> result<void> {
    m->span.begin_ns = trace::now();
    return {};
  });
}

result<void> stage_recorder::after(queue& q, int microbatch, stage const& s) {
  return q.run([m = &mark_of(microbatch, s)]() -> result<void> {
    trace_span done = m->span;
    done.end_ns = trace::now();
    done.phase = m->of->phase_;
    done.step = m->of->step_;
    m->of->trace_.add(done);
    return {};
  });
}

result<std::vector<rank_span>> gather_spans(group const& ranks, trace const& mine) {
  using json = nlohmann::json;
  json rows = json::array();
  for (trace_span const& s : mine.spans())
    rows.push_back({s.name, s.queue, s.microbatch, s.layer, s.step, s.begin_ns, s.end_ns, s.phase});
  auto const cbor = json::to_cbor(rows);
  FERRY_TRY(auto const all, ranks.all_gather(std::as_bytes(std::span(cbor))));
  std::vector<rank_span> spans;
  if (ranks.rank() != 0) return spans;
  try {
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      auto const* const first = reinterpret_cast<std::uint8_t const*>(all[rank].data());
      for (json const& s : json::from_cbor(first, first + all[rank].size()))
        spans.push_back({static_cast<int>(rank), s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7]});
    }
  } catch (json::exception const& e) {
    return error{error_code::malformed_input, fmt::format("a rank's trace: {}", e.what())};
  }
  return spans;
}

result<void> write_trace(std::vector<rank_span> const& spans, std::filesystem::path const& file) {
  std::ofstream out(file, std::ios::trunc);
  out << "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  std::int64_t start = spans.empty() ? 0 : spans[0].begin_ns;
  int ranks = 0;
  for (rank_span const& s : spans) {
    start = std::min(start, s.begin_ns);
    ranks = std::max(ranks, s.rank + 1);
  }
  for (int r = 0; r < ranks; ++r) {
    out << fmt::format(R"({{"ph":"M","name":"process_name","pid":{},"args":{{"name":"rank {}"}}}},)"
                       "\n",
                       r, r);
    for (int q = 0; q < 2; ++q)
      out << fmt::format(
          R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":"{}"}}}},)"
          "\n",
          r, q, q == 0 ? "compute" : "communication");
  }
  bool first = true;
  for (rank_span const& s : spans) {
    out << (first ? "" : ",\n")
        << fmt::format(
               R"({{"ph":"X","name":"{}","cat":"microbatch {}","pid":{},"tid":{},"ts":{:.3f},)"
               R"("dur":{:.3f},"args":{{"layer":{},"microbatch":{},"phase":"{}","step":{}}}}})",
               s.name, s.microbatch, s.rank, s.queue, static_cast<double>(s.begin_ns - start) / 1e3,
               static_cast<double>(s.end_ns - s.begin_ns) / 1e3, s.layer, s.microbatch, s.phase,
               s.step);
    first = false;
  }
  out << "\n]}\n";
  if (!out.flush())
    return error{error_code::io, fmt::format("{}: cannot be written", file.string())};
  return {};
}

}  // namespace ferry::decode
