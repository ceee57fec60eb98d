// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "deepseek/tokenizer/regex.hpp"

#include "base/fail.hpp"
#include "deepseek/tokenizer/oniguruma_pattern.hpp"
#include "files/utf8.hpp"

#include <algorithm>
#include <chrono>
#include <string>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace ferry::deepseek {

namespace {

constexpr std::uint32_t heap_limit_kib = 256 * 1024;
constexpr std::uint32_t match_limit = 10'000'000;

// PCRE2 counts the steps of one place to start from, and a rule may need as many again at every
// place. So a search tries some places at a time, and ends when it takes far longer than steps in
// proportion to the text would.
constexpr std::size_t starts_at_a_time = 256;
constexpr std::chrono::nanoseconds time_for(std::size_t bytes) {
  return std::chrono::seconds(5) + std::chrono::microseconds(2) * bytes;
}

template <auto Free>
struct freed_by {
  void operator()(auto* p) const { Free(p); }
};
using compile_context =
    std::unique_ptr<pcre2_compile_context, freed_by<pcre2_compile_context_free>>;
using match_context = std::unique_ptr<pcre2_match_context, freed_by<pcre2_match_context_free>>;
using match_data = std::unique_ptr<pcre2_match_data, freed_by<pcre2_match_data_free>>;

std::string message_of(int code) {
  PCRE2_UCHAR text[256];
  pcre2_get_error_message(code, text, sizeof text);
  return reinterpret_cast<char const*>(text);
}

bool is_inside_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

PCRE2_SPTR units_of(std::string_view text) {
  // An empty view may have no address, which PCRE2 takes for a mistake.
  return reinterpret_cast<PCRE2_SPTR>(text.empty() ? "" : text.data());
}

}  // namespace

void regex::free_code::operator()(pcre2_real_code_8* code) const {
  pcre2_code_free(code);
}

result<regex> regex::oniguruma(std::string_view pattern) {
  FERRY_TRY(auto translated, pcre2_from_oniguruma(pattern));
  return compile(translated, false);
}

result<regex> regex::literal(std::string_view text) {
  return compile(text, true);
}

result<regex> regex::compile(std::string_view pattern, bool is_literal) {
  compile_context context(pcre2_compile_context_create(nullptr));
  if (!context) return fail(error_code::out_of_memory, "no memory for a regular expression");
  // As Oniguruma has them, whatever this PCRE2 was built with.
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  pcre2_set_bsr(context.get(), PCRE2_BSR_UNICODE);
  std::uint32_t options = PCRE2_UTF | PCRE2_USE_OFFSET_LIMIT;
  options |= is_literal ? PCRE2_LITERAL : PCRE2_UCP | PCRE2_MULTILINE;
  int code = 0;
  std::size_t at = 0;
  regex compiled;
  compiled.code_.reset(
      pcre2_compile(units_of(pattern), pattern.size(), options, &code, &at, context.get()));
  if (!compiled.code_)
    return fail(error_code::malformed_input, "the regular expression {} is not understood: {}",
                pattern.substr(0, valid_prefix(pattern.substr(0, 200))), message_of(code));
  // Where the machine allows no generated code PCRE2 interprets, more slowly.
  (void)pcre2_jit_compile(compiled.code_.get(), PCRE2_JIT_COMPLETE);
  return compiled;
}

result<std::vector<text_range>> regex::find_all(std::string_view subject) const {
  match_context context(pcre2_match_context_create(nullptr));
  match_data data(pcre2_match_data_create_from_pattern(code_.get(), nullptr));
  if (!context || !data) return fail(error_code::out_of_memory, "no memory to match a text");
  pcre2_set_heap_limit(context.get(), heap_limit_kib);
  pcre2_set_match_limit(context.get(), match_limit);
  auto match = [&](std::size_t from, std::uint32_t options) {
    return pcre2_match(code_.get(), units_of(subject), subject.size(), from,
                       PCRE2_NO_UTF_CHECK | options, data.get(), context.get());
  };
  auto const begun = std::chrono::steady_clock::now();

  std::vector<text_range> matches;
  std::size_t from = 0;
  while (from <= subject.size()) {
    auto last = std::min(from + starts_at_a_time, subject.size());
    while (last < subject.size() && is_inside_character(subject[last])) ++last;
    pcre2_set_offset_limit(context.get(), last);
    int code = match(from, 0);
    // Generated code has a small fixed stack; the interpreter takes what it needs from the heap.
    if (code == PCRE2_ERROR_JIT_STACKLIMIT) code = match(from, PCRE2_NO_JIT);
    if (code == PCRE2_ERROR_NOMATCH) {
      if (last == subject.size()) break;
      if (std::chrono::steady_clock::now() - begun > time_for(subject.size()))
        return fail(error_code::invalid_argument,
                    "a split rule takes too long in a text of {} bytes, at byte {}: {} s and more",
                    subject.size(), last, time_for(subject.size()) / std::chrono::seconds(1));
      from = last;
      continue;
    }
    if (code < 0)
      return fail(error_code::invalid_argument,
                  "a split rule fails in a text of {} bytes, at byte {}: {} (at most {} steps and "
                  "{} KiB)",
                  subject.size(), from, message_of(code), match_limit, heap_limit_kib);
    auto* ends = pcre2_get_ovector_pointer(data.get());
    text_range found{ends[0], ends[1]};
    bool repeats = found.begin == found.end && !matches.empty() && matches.back().end == found.end;
    if (repeats) {
      if (from >= subject.size()) break;
      from += front_of(subject.substr(from)).bytes;
    } else {
      matches.push_back(found);
      from = found.end;
    }
  }
  return matches;
}

}  // namespace ferry::deepseek
