// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "console.hpp"

#include "texts.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace ferry::decode {
namespace {

constexpr auto news_interval = std::chrono::seconds(2);

void put(std::string const& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

}  // namespace

result<console> console::open(options const& o, std::optional<deepseek::tokenizer> tokenizer,
                              int rank) {
  console c;
  c.shows_ = rank == 0;
  // mpirun passes output on to the terminal through a pipe.
  c.text_is_progress_ = ::isatty(STDOUT_FILENO) || std::getenv("OMPI_COMM_WORLD_SIZE");
  c.tokenizer_ = std::move(tokenizer);
  if (c.tokenizer_) c.stream_.emplace(*c.tokenizer_);
  if (rank != 0) return c;
  for (auto const* file : {&o.json_file, &o.trace_file, &o.timeline_file, &o.balance.loads_file})
    if (*file) FERRY_CHECK(check_writable(**file));
  if (!o.logits_file) return c;
  c.logits_name_ = o.logits_file->string();
  c.logits_.emplace(*o.logits_file, std::ios::binary | std::ios::trunc);
  if (!*c.logits_)
    return error{error_code::io, fmt::format("{}: cannot be written", c.logits_name_)};
  return c;
}

result<void> console::on_first_logits(std::span<float const> row) {
  if (!logits_) return {};
  static_assert(sizeof(float) == 4);
  logits_->write(reinterpret_cast<char const*>(row.data()),
                 static_cast<std::streamsize>(row.size_bytes()));
  if (!*logits_) return error{error_code::io, fmt::format("{}: cannot be written", logits_name_)};
  return {};
}

void console::on_token(sequence const& s, std::int32_t id) {
  if (!shows_ || s.prompt != 0) return;
  if (s.new_ids().size() == 1) {
    begin_text(0, 0, std::span(s.ids).first(s.prompt_tokens));
    first_text_open_ = true;
  }
  if (stream_) {
    put(text_after(*stream_, id));
  } else {
    put(fmt::format(" {}", id));
  }
  if (s.ended) end_first_text();
}

void console::on_prefill_step(int done, int steps) {
  if (shows_ && done < steps && is_time()) say(fmt::format("prefill: step {} of {}", done, steps));
}

void console::on_decode_step(int done, int steps) {
  bool visible = text_is_progress_ && first_text_open_;
  if (shows_ && !visible && is_time()) say(fmt::format("decode: step {} of {}", done, steps));
}

void console::say(std::string const& news) {
  if (!shows_) return;
  fmt::print(stderr, "[{}]\n", news);
  last_news_ = std::chrono::steady_clock::now();
}

bool console::is_time() {
  return std::chrono::steady_clock::now() - last_news_ >= news_interval;
}

void console::begin_text(std::size_t prompt, int rank, std::span<std::int32_t const> ids) {
  put(fmt::format("\n--- prompt {}, rank {} ---\n{}", prompt, rank, text_of(ids)));
}

std::string console::text_of(std::span<std::int32_t const> ids) const {
  if (tokenizer_) return decode::text_of(*tokenizer_, ids);
  return fmt::format("{}", fmt::join(ids, " "));
}

void console::end_first_text() {
  if (!std::exchange(first_text_open_, false)) return;
  put((stream_ ? stream_->finish() : "") + "\n");
}

void console::show_other_texts(std::vector<std::vector<std::int32_t>> const& prompts,
                               report const& r, int num_ranks) {
  if (!shows_) return;
  end_first_text();
  for (std::size_t i = 1; i < prompts.size(); ++i) {
    begin_text(i, static_cast<int>(i % static_cast<std::size_t>(num_ranks)), prompts[i]);
    put((tokenizer_ ? "" : " ") + text_of(r.tokens[i]) + "\n");
  }
}

result<void> check_shown() {
  // A write that failed before is remembered by the stream.
  if (std::fflush(stdout) != 0 || std::ferror(stdout))
    return error{error_code::io, "standard output cannot be written"};
  return {};
}

result<void> console::finish() {
  if (!logits_) return {};
  logits_->close();
  if (!*logits_) return error{error_code::io, fmt::format("{}: cannot be written", logits_name_)};
  return {};
}

}  // namespace ferry::decode
