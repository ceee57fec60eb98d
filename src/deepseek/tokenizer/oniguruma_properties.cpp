// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "deepseek/tokenizer/oniguruma_properties.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>

namespace ferry::deepseek {
namespace {

struct property_name {
  std::string_view spelled, pcre2;
};

// General categories by their short names, which both libraries share, and by their long ones.
constexpr std::string_view categories[] = {
    "C",  "Cc", "Cf", "Cn", "Co", "Cs", "L",  "Ll", "Lm", "Lo", "Lt", "Lu", "M",
    "Mc", "Me", "Mn", "N",  "Nd", "Nl", "No", "P",  "Pc", "Pd", "Pe", "Pf", "Pi",
    "Po", "Ps", "S",  "Sc", "Sk", "Sm", "So", "Z",  "Zl", "Zp", "Zs", "Any"};
constexpr property_name long_names[] = {{"letter", "L"},
                                        {"uppercaseletter", "Lu"},
                                        {"lowercaseletter", "Ll"},
                                        {"titlecaseletter", "Lt"},
                                        {"modifierletter", "Lm"},
                                        {"otherletter", "Lo"},
                                        {"mark", "M"},
                                        {"nonspacingmark", "Mn"},
                                        {"spacingmark", "Mc"},
                                        {"enclosingmark", "Me"},
                                        {"number", "N"},
                                        {"decimalnumber", "Nd"},
                                        {"letternumber", "Nl"},
                                        {"othernumber", "No"},
                                        {"punctuation", "P"},
                                        {"symbol", "S"},
                                        {"mathsymbol", "Sm"},
                                        {"currencysymbol", "Sc"},
                                        {"modifiersymbol", "Sk"},
                                        {"othersymbol", "So"},
                                        {"separator", "Z"},
                                        {"spaceseparator", "Zs"},
                                        {"lineseparator", "Zl"},
                                        {"paragraphseparator", "Zp"},
                                        {"other", "C"},
                                        {"control", "Cc"},
                                        {"format", "Cf"},
                                        {"digit", "Nd"},
                                        {"alpha", "Alphabetic"},
                                        {"alphabetic", "Alphabetic"},
                                        {"upper", "Uppercase"},
                                        {"uppercase", "Uppercase"},
                                        {"lower", "Lowercase"},
                                        {"lowercase", "Lowercase"}};
// What the two libraries, or two versions of one, define differently.
constexpr std::string_view disputed[] = {"punct",  "graph", "print", "cntrl", "blank",
                                         "xdigit", "alnum", "ascii", "word"};

}  // namespace

bool property_is_disputed(std::string_view name) {
  return std::ranges::find(disputed, name) != std::end(disputed);
}

std::string_view pcre2_property(std::string_view name) {
  std::string_view known;
  for (auto category : categories)
    if (std::ranges::equal(category, name, {}, [](unsigned char c) { return std::tolower(c); }))
      known = category;
  for (auto& [spelled, pcre2] : long_names)
    if (spelled == name) known = pcre2;
  return known;
}

}  // namespace ferry::deepseek
