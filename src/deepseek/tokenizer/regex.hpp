// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Regular expressions over UTF-8, by PCRE2.
#pragma once

#include <ferry/base/result.hpp>

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

struct pcre2_real_code_8;

namespace ferry::deepseek {

struct text_range {
  std::size_t begin, end;
};

class regex {
 public:
  /// Errors   as pcre2_from_oniguruma; malformed_input what PCRE2 refuses
  static result<regex> oniguruma(std::string_view pattern);
  /// Matches `text` itself.
  static result<regex> literal(std::string_view text);

  /// The matches in `subject`, valid UTF-8, from left to right; empty ones too, but none where the
  /// one before ended.
  /// Errors   invalid_argument `subject` needs more steps, memory or time than a limit allows
  result<std::vector<text_range>> find_all(std::string_view subject) const;

 private:
  struct free_code {
    void operator()(pcre2_real_code_8* code) const;
  };
  static result<regex> compile(std::string_view pattern, bool is_literal);
  std::unique_ptr<pcre2_real_code_8, free_code> code_;
};

}  // namespace ferry::deepseek
