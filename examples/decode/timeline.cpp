// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// One step of all ranks, drawn as SVG: two lanes a rank, time to the right.

#include "step_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <utility>

namespace ferry::decode {
namespace {

struct colour {
  char const* name;
  char const* fill;
};
constexpr colour colours[] = {
    {"embedding", "#bdbdbd"},     {"attention", "#4c78a8"},
    {"gate", "#9ecae9"},          {"dense", "#72b7b2"},
    {"shared_expert", "#88d27a"}, {"experts", "#54a24b"},
    {"dispatch_send", "#f58518"}, {"dispatch_receive", "#ffbf79"},
    {"combine_send", "#b279a2"},  {"combine_receive", "#d6a5c9"},
    {"head", "#79706e"},
};
constexpr double left = 150, width = 1060, lane = 26, gap = 16, top = 88;

char const* fill_of(std::string const& name) {
  for (colour const& c : colours)
    if (name == c.name) return c.fill;
  return "#000000";
}

struct extent {
  std::int64_t begin = INT64_MAX, end = INT64_MIN;
  void add(rank_span const& s) {
    begin = std::min(begin, s.begin_ns);
    end = std::max(end, s.end_ns);
  }
  std::int64_t length() const { return end - begin; }
};

std::vector<rank_span> decode_spans(std::vector<rank_span> spans) {
  std::erase_if(spans, [](rank_span const& s) { return s.phase != "decode"; });
  return spans;
}

/// The step of median length among the later half, where everything is warm.
int typical_step(std::vector<rank_span> const& spans) {
  std::map<int, extent> steps;
  for (rank_span const& s : spans) steps[s.step].add(s);
  std::vector<std::pair<std::int64_t, int>> later;
  std::size_t seen = 0;
  for (auto const& [number, e] : steps)
    if (2 * ++seen >= steps.size()) later.emplace_back(e.length(), number);
  std::sort(later.begin(), later.end());
  return later[later.size() / 2].second;
}

/// 1, 2 or 5 times a power of ten: about eight of them fill the width.
double tick_of(double milliseconds) {
  double const rough = milliseconds / 8;
  double const power = std::pow(10, std::floor(std::log10(rough)));
  for (double const m : {1.0, 2.0, 5.0})
    if (rough <= m * power) return m * power;
  return 10 * power;
}

std::string legend() {
  std::string out;
  double x = left, y = 44;
  for (colour const& c : colours) {
    out += fmt::format(
        "<rect x='{:.0f}' y='{:.0f}' width='12' height='12' fill='{}'/><text x='{:.0f}' "
        "y='{:.0f}'>{}</text>\n",
        x, y, c.fill, x + 16, y + 10, c.name);
    x += 150;
    if (x > left + width - 140) {
      x = left;
      y += 18;
    }
  }
  return out;
}

std::string axis(double scale, double length_ms, double bottom) {
  std::string out;
  double const tick = tick_of(length_ms);
  for (int i = 0; i * tick <= length_ms; ++i) {
    double const x = left + i * tick * scale;
    out += fmt::format(
        "<line x1='{0:.1f}' y1='{1}' x2='{0:.1f}' y2='{2:.1f}' stroke='#dddddd'/><text x='{0:.1f}' "
        "y='{3:.1f}' text-anchor='middle'>{4:g} ms</text>\n",
        x, top, bottom, bottom + 14, i * tick);
  }
  return out;
}

}  // namespace

std::string timeline_of(std::vector<rank_span> const& all_spans) {
  std::vector<rank_span> const spans = decode_spans(all_spans);
  int const step = typical_step(spans);
  extent all;
  int ranks = 0, microbatches = 0;
  for (rank_span const& s : spans) {
    ranks = std::max(ranks, s.rank + 1);
    if (s.step != step) continue;
    microbatches = std::max(microbatches, s.microbatch + 1);
    all.add(s);
  }
  double const length_ms = std::max(1e-3, static_cast<double>(all.length()) / 1e6);
  double const scale = width / length_ms;
  double const bottom = top + ranks * (2 * lane + gap);
  std::string out = fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {0:.0f} {1:.0f}' width='{0:.0f}' "
      "height='{1:.0f}' font-family='sans-serif' font-size='11'>\n<rect width='100%' height='100%' "
      "fill='white'/>\n<text x='{2}' y='24' font-size='15'>One decode step: {3} rank{4}, {5} "
      "microbatch{6}, {7:.2f} ms</text>\n",
      left + width + 30, bottom + 30, left, ranks, ranks == 1 ? "" : "s", microbatches,
      microbatches == 1 ? "" : "es", length_ms);
  out += legend() + axis(scale, length_ms, bottom);
  for (int r = 0; r < ranks; ++r)
    for (int q = 0; q < 2; ++q)
      out += fmt::format("<text x='{}' y='{:.1f}' text-anchor='end'>rank {} {}</text>\n", left - 8,
                         top + r * (2 * lane + gap) + q * lane + 16, r,
                         q == 0 ? "compute" : "communication");
  for (rank_span const& s : spans) {
    if (s.step != step) continue;
    double const x = left + static_cast<double>(s.begin_ns - all.begin) / 1e6 * scale;
    double const w = std::max(0.6, static_cast<double>(s.end_ns - s.begin_ns) / 1e6 * scale);
    double const y = top + s.rank * (2 * lane + gap) + s.queue * lane + 2;
    // Microbatches differ by how they are outlined; the tooltip says the rest.
    out += fmt::format(
        "<g><title>{} layer {} microbatch {}: {:.3f} ms</title><rect x='{:.2f}' y='{:.1f}' "
        "width='{:.2f}' height='{:.0f}' fill='{}' stroke='{}' stroke-width='{}'/>",
        s.name, s.layer, s.microbatch, static_cast<double>(s.end_ns - s.begin_ns) / 1e6, x, y, w,
        lane - 5, fill_of(s.name), s.microbatch % 2 ? "#000000" : "#ffffff",
        s.microbatch % 2 ? 1.0 : 0.4);
    if (w > 14)
      out += fmt::format("<text x='{:.2f}' y='{:.1f}' text-anchor='middle' fill='white'>{}</text>",
                         x + w / 2, y + 14, s.microbatch);
    out += "</g>\n";
  }
  return out + "</svg>\n";
}

result<void> write_timeline(std::vector<rank_span> const& spans,
                            std::filesystem::path const& file) {
  if (decode_spans(spans).empty())
    return error{error_code::invalid_state, "no decode step was recorded that could be drawn"};
  std::ofstream out(file, std::ios::trunc);
  out << timeline_of(spans);
  if (!out.flush())
    return error{error_code::io, fmt::format("{}: cannot be written", file.string())};
  return {};
}

}  // namespace ferry::decode
