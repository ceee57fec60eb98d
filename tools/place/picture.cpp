// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "picture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

namespace ferry::place_tool {
namespace {

constexpr char const* ink = "#1f2933";
constexpr char const* pale = "#9aa5b1";
constexpr char const* calm = "#4f83b6";
constexpr char const* busy = "#d1495b";

/// Sizes in pixels, and the highest bar.
struct frame {
  double left = 62, top = 74, gap = 40, head = 26;
  double width;
  double height;
  double most;  ///< load over mean at the top of a field
  int layers, ranks;

  double x(std::size_t column) const { return left + static_cast<double>(column) * (width + gap); }
  double y(int layer) const { return top + head + layer * (height + 8); }
};

frame frame_for(comparison const& all, std::vector<outcome const*> const& columns) {
  frame f;
  f.layers = all.loads.num_layers;
  f.ranks = all.present.where.num_ranks;
  for (auto const* out : columns) f.ranks = std::max(f.ranks, out->where.num_ranks);
  f.width = std::clamp(f.ranks * 14.0, 130.0, 320.0);
  f.height = f.layers <= 8 ? 74 : f.layers <= 24 ? 40 : 24;
  double most = 1.2;
  for (auto const* out : columns) most = std::max(most, out->balance.worst);
  f.most = most * 1.04;
  return f;
}

using text = std::back_insert_iterator<std::string>;

void draw_field(text to, frame const& f, outcome const& out, std::size_t column, int layer) {
  double const x = f.x(column), bottom = f.y(layer) + f.height;
  int const ranks = out.where.num_ranks;
  double const step = f.width / ranks, bar = std::max(step * 0.78, 0.6);
  auto const* loads = out.balance.rank_loads.data() + static_cast<std::ptrdiff_t>(layer) * ranks;
  double sum = 0;
  for (int r = 0; r < ranks; ++r) sum += loads[r];
  double const mean = sum > 0 ? sum / ranks : 1;
  int const busiest = static_cast<int>(std::max_element(loads, loads + ranks) - loads);
  for (int r = 0; r < ranks; ++r) {
    double const height = loads[r] / mean / f.most * f.height;
    bool const most = r == busiest && loads[r] > 1.005 * mean;
    fmt::format_to(to,
                   "<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" "
                   "fill=\"{}\"><title>layer {}, rank {}: {:.3f} of the mean</title></rect>\n",
                   x + r * step + (step - bar) / 2, bottom - height, bar, height,
                   most ? busy : calm, layer, r, loads[r] / mean);
  }
  double const line = bottom - f.height / f.most;
  fmt::format_to(to,
                 "<path d=\"M{0:.1f} {1:.2f}h{2:.1f}\" stroke=\"{3}\" stroke-dasharray=\"3 2\"/>\n"
                 "<path d=\"M{0:.1f} {4:.2f}h{2:.1f}\" stroke=\"{5}\"/>\n",
                 x, line, f.width, ink, bottom, pale);
  fmt::format_to(to, "<text x=\"{:.1f}\" y=\"{:.1f}\" fill=\"{}\">{:.2f}</text>\n", x + f.width + 4,
                 line + 3, ink, out.balance.max_over_mean[static_cast<std::size_t>(layer)]);
}

void draw_head(text to, frame const& f, outcome const& out, std::size_t column) {
  auto const distance =
      out.distance ? fmt::format(", {:.2f} ranks/token", out.distance->ranks_per_token) : "";
  fmt::format_to(
      to,
      "<text x=\"{0:.1f}\" y=\"{1:.1f}\" font-size=\"13\" font-weight=\"bold\" fill=\"{2}\">{3}"
      "</text>\n<text x=\"{0:.1f}\" y=\"{4:.1f}\" fill=\"{2}\">{5:.3f}{6}</text>\n",
      f.x(column), f.top - 4, ink, out.name, f.top + 10, out.balance.mean, distance);
}

}  // namespace

std::string picture_of(comparison const& all) {
  std::vector<outcome const*> columns = {&all.present};
  for (auto const& out : all.outcomes)
    if (out.where != all.present.where) columns.push_back(&out);  // nothing changes there
  frame f = frame_for(all, columns);
  // The line below a name has to fit its column.
  f.width = std::max(f.width, all.trace ? 150.0 : 130.0);
  double const right = f.x(columns.size());
  double const bottom = f.y(f.layers) + 18;
  std::string svg;
  text to(svg);
  fmt::format_to(
      to,
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
      "width=\"{0:.0f}\" height=\"{1:.0f}\" font-family=\"sans-serif\" font-size=\"10\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
      "<text x=\"14\" y=\"24\" font-size=\"16\" font-weight=\"bold\" fill=\"{2}\">"
      "Load of each rank, by layer</text>\n"
      "<text x=\"14\" y=\"42\" fill=\"{2}\">One bar a rank; the dashed line is the mean. "
      "Numbers: the busiest rank (red) over the mean, below a name the mean over layers.</text>\n",
      std::max(right, 560.0), bottom, ink);
  for (int l = 0; l < f.layers; ++l)
    fmt::format_to(to, "<text x=\"14\" y=\"{:.1f}\" fill=\"{}\">layer {}</text>\n",
                   f.y(l) + f.height / 2 + 4, ink, l);
  for (std::size_t c = 0; c < columns.size(); ++c) {
    draw_head(to, f, *columns[c], c);
    for (int l = 0; l < f.layers; ++l) draw_field(to, f, *columns[c], c, l);
  }
  svg += "</svg>\n";
  return svg;
}

}  // namespace ferry::place_tool
