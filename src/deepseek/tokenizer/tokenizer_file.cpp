// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "deepseek/tokenizer/tokenizer_file.hpp"

#include "base/fail.hpp"
#include "deepseek/tokenizer/byte_alphabet.hpp"
#include "deepseek/tokenizer/json_place.hpp"
#include "deepseek/tokenizer/pre_tokenizer_section.hpp"
#include "files/json_text.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <unordered_map>
#include <utility>

namespace ferry::deepseek {

namespace {

// Ids by a token's spelling in the file; the keys are the document's own strings.
using id_map = std::unordered_map<std::string_view, std::int32_t>;

struct reader {
  token_table tokens;
  id_map vocabulary;
  std::vector<added_token> added;
  std::vector<std::int32_t> before, after;
  std::optional<std::int32_t> eos;

  result<void> vocabulary_from(json_place const& vocab);
  result<byte_pair_encoding> merging_from(json_place const& model) const;
  result<void> added_from(json_place const& list);
  result<void> surrounding_from(json_place const& processor, int depth);
  result<void> configure(json_place const& config);
  std::optional<std::int32_t> find(std::string_view spelling) const;
};

result<void> reader::vocabulary_from(json_place const& vocab) {
  FERRY_TRY(auto entries, vocab.object());
  vocabulary.reserve(entries->size());
  for (auto& [spelling, value] : entries->items()) {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > token_table::max_id)
      return fail(error_code::malformed_input, "{}['{}']: {} is no id in 0..{}", vocab.path,
                  spelling.substr(0, 100), value.is_structured() ? value.type_name() : value.dump(),
                  token_table::max_id);
    auto id = value.get<std::int32_t>();
    if (tokens.has(id))
      return fail(error_code::malformed_input, "{}['{}']: id {} is another token's too", vocab.path,
                  spelling.substr(0, 100), id);
    // What stands for no bytes can only be an added token, and is its own text.
    tokens.set(id, bytes_spelled_by(spelling).value_or(spelling), false);
    vocabulary.emplace(spelling, id);
  }
  return {};
}

std::optional<std::int32_t> reader::find(std::string_view spelling) const {
  for (auto& token : added)
    if (token.content == spelling) return token.id;
  auto found = vocabulary.find(spelling);
  return found == vocabulary.end() ? std::nullopt : std::optional(found->second);
}

// The two sides of a merge: "a b" or ["a", "b"].
result<std::pair<std::string_view, std::string_view>> sides_of(json_place const& merge) {
  if (merge.value->is_array() && merge.value->size() == 2) {
    FERRY_TRY(auto left, merge.element(0).text());
    FERRY_TRY(auto right, merge.element(1).text());
    return std::pair(left, right);
  }
  FERRY_TRY(auto both, merge.text());
  auto gap = both.find(' ');
  if (gap == both.npos || both.find(' ', gap + 1) != both.npos)
    return fail(error_code::malformed_input, "{}: '{}' is not two tokens with a space between",
                merge.path, both.substr(0, 100));
  return std::pair(both.substr(0, gap), both.substr(gap + 1));
}

result<std::vector<merge_rule>> merges_from(json_place const& list, id_map const& vocabulary) {
  FERRY_TRY(auto elements, list.array());
  std::vector<merge_rule> merges;
  merges.reserve(elements->size());
  for (std::size_t i = 0; i < elements->size(); ++i) {
    json_place at{&(*elements)[i], {}};
    // Only a first line in the way of merges.txt can begin so.
    if (at.value->is_string() && at.text()->starts_with("#version")) continue;
    auto sides = sides_of(at);
    if (!sides) return fail(sides.error().code, "{}[{}]{}", list.path, i, sides.error().message);
    auto [left, right] = *sides;
    auto whole = std::string(left).append(right);
    std::int32_t ids[3];
    std::string_view parts[3] = {left, right, whole};
    for (int part = 0; part < 3; ++part) {
      auto found = vocabulary.find(parts[part]);
      if (found == vocabulary.end())
        return fail(error_code::malformed_input, "{}[{}]: '{}' is not in the vocabulary", list.path,
                    i, parts[part].substr(0, 100));
      ids[part] = found->second;
    }
    merges.push_back({ids[0], ids[1], ids[2]});
  }
  return merges;
}

// Settings that would give other ids, but for vocabularies in which they never apply.
result<void> check_settings(json_place const& model, bool every_byte_has_token) {
  FERRY_TRY(auto dropout, model.find("dropout"));
  if (dropout && !(dropout->value->is_number() && dropout->value->get<double>() == 0))
    return fail(error_code::unsupported, "{}: dropout {}", dropout->path, dropout->value->dump());
  for (auto name : {"continuing_subword_prefix", "end_of_word_suffix", "unk_token"}) {
    FERRY_TRY(auto setting, model.find(name));
    if (!setting) continue;
    FERRY_TRY(auto text, setting->text());
    // With a token for every byte nothing is unknown.
    if (text.empty() || (std::string_view(name) == "unk_token" && every_byte_has_token)) continue;
    return fail(error_code::unsupported, "{}: '{}'", setting->path, text.substr(0, 100));
  }
  FERRY_TRY(bool fallback, model.flag_or("byte_fallback", false));
  if (fallback && !every_byte_has_token)
    return fail(error_code::unsupported, "{}.byte_fallback: true", model.path);
  return {};
}

result<byte_pair_encoding> reader::merging_from(json_place const& model) const {
  std::array<std::int32_t, 256> byte_ids;
  for (int byte = 0; byte < 256; ++byte) {
    auto found = vocabulary.find(spelling_of(static_cast<unsigned char>(byte)));
    byte_ids[static_cast<std::size_t>(byte)] = found == vocabulary.end() ? -1 : found->second;
  }
  FERRY_CHECK(check_settings(model, std::ranges::count(byte_ids, -1) == 0));
  FERRY_TRY(auto merges_at, model.at("merges"));
  FERRY_TRY(auto merges, merges_from(merges_at, vocabulary));
  whole_words words;
  FERRY_TRY(bool ignore_merges, model.flag_or("ignore_merges", false));
  if (ignore_merges)
    for (auto& [spelling, id] : vocabulary)
      if (auto bytes = bytes_spelled_by(spelling)) words.emplace(*std::move(bytes), id);
  return byte_pair_encoding(byte_ids, merges, std::move(words));
}

result<added_token> read_added(json_place const& at) {
  added_token token;
  FERRY_TRY(auto content_at, at.at("content"));
  FERRY_TRY(auto content, content_at.text());
  token.content = content;
  FERRY_TRY(auto id_at, at.at("id"));
  FERRY_TRY(auto id, id_at.integer(0, token_table::max_id));
  token.id = static_cast<std::int32_t>(id);
  FERRY_TRY(token.single_word, at.flag_or("single_word", false));
  FERRY_TRY(token.lstrip, at.flag_or("lstrip", false));
  FERRY_TRY(token.rstrip, at.flag_or("rstrip", false));
  FERRY_TRY(token.special, at.flag_or("special", false));
  FERRY_TRY(token.normalized, at.flag_or("normalized", !token.special));
  return token;
}

result<void> reader::added_from(json_place const& list) {
  FERRY_TRY(auto elements, list.array());
  id_map seen;
  std::vector<bool> taken(static_cast<std::size_t>(token_table::max_id) + 1);
  added.reserve(elements->size());
  for (std::size_t i = 0; i < elements->size(); ++i) {
    auto at = list.element(i);
    FERRY_TRY(auto token, read_added(at));
    if (token.content.empty())
      return fail(error_code::malformed_input, "{}.content: empty", at.path);
    auto known = vocabulary.find(token.content);
    bool is_in_vocabulary = known != vocabulary.end();
    if (is_in_vocabulary && known->second != token.id)
      return fail(error_code::malformed_input, "{}: '{}' has id {}, but {} in the vocabulary",
                  at.path, token.content.substr(0, 100), token.id, known->second);
    auto place = static_cast<std::size_t>(token.id);
    if (taken[place] || (!is_in_vocabulary && tokens.has(token.id)))
      return fail(error_code::malformed_input, "{}: id {} of '{}' is another token's too", at.path,
                  token.id, token.content.substr(0, 100));
    taken[place] = true;
    tokens.set(token.id, token.content, token.special);
    added.push_back(std::move(token));
    if (!seen.emplace(added.back().content, added.back().id).second)
      return fail(error_code::malformed_input, "{}: '{}' is added twice", at.path,
                  added.back().content.substr(0, 100));
  }
  return {};
}

// The ids that a template's special token stands for.
result<std::vector<std::int32_t>> template_ids(json_place const& processor, json_place const& token,
                                               token_table const& tokens) {
  FERRY_TRY(auto name_at, token.at("id"));
  FERRY_TRY(auto name, name_at.text());
  FERRY_TRY(auto table, processor.at("special_tokens"));
  FERRY_TRY(auto entry, table.at(name));
  FERRY_TRY(auto list, entry.at("ids"));
  FERRY_TRY(auto elements, list.array());
  std::vector<std::int32_t> ids;
  for (std::size_t i = 0; i < elements->size(); ++i) {
    FERRY_TRY(auto id, list.element(i).integer(0, token_table::max_id));
    if (!tokens.has(static_cast<std::int32_t>(id)))
      return fail(error_code::malformed_input, "{}: {} is no token's id", list.element(i).path, id);
    ids.push_back(static_cast<std::int32_t>(id));
  }
  return ids;
}

result<void> reader::surrounding_from(json_place const& processor, int depth) {
  FERRY_TRY(auto type, processor.type());
  if (type == "ByteLevel") return {};  // moves offsets only
  if (type == "Sequence") {
    if (depth == 16)
      return fail(error_code::malformed_input, "{}: more than 16 sequences in each other",
                  processor.path);
    FERRY_TRY(auto list, processor.at("processors"));
    FERRY_TRY(auto elements, list.array());
    for (std::size_t i = 0; i < elements->size(); ++i)
      FERRY_CHECK(surrounding_from(list.element(i), depth + 1));
    return {};
  }
  if (type != "TemplateProcessing")
    return fail(error_code::unsupported, "{}: the post-processor {}", processor.path, type);
  FERRY_TRY(auto list, processor.at("single"));
  FERRY_TRY(auto elements, list.array());
  std::vector<std::int32_t> front, back;
  bool text_seen = false;
  for (std::size_t i = 0; i < elements->size(); ++i) {
    auto at = list.element(i);
    FERRY_TRY(auto token, at.find("SpecialToken"));
    if (!token) {
      FERRY_TRY(auto sequence, at.at("Sequence"));
      FERRY_TRY(auto name_at, sequence.at("id"));
      FERRY_TRY(auto name, name_at.text());
      if (name != "A" || std::exchange(text_seen, true))
        return fail(error_code::malformed_input, "{}: more than one text in a single template",
                    at.path);
      continue;
    }
    FERRY_TRY(auto ids, template_ids(processor, *token, tokens));
    auto& side = text_seen ? back : front;
    side.insert(side.end(), ids.begin(), ids.end());
  }
  if (!text_seen) return fail(error_code::malformed_input, "{}: no place for the text", list.path);
  // A later processor puts its tokens around those of an earlier one.
  before.insert(before.begin(), front.begin(), front.end());
  after.insert(after.end(), back.begin(), back.end());
  return {};
}

// A token by its text, or by an object that has its text as content.
result<std::optional<std::int32_t>> named_token(reader const& read, json_place const& config,
                                                std::string_view name) {
  FERRY_TRY(auto token, config.find(name));
  if (!token) return std::optional<std::int32_t>();
  if (token->value->is_object()) {
    FERRY_TRY(token, token->at("content"));
  }
  FERRY_TRY(auto content, token->text());
  auto id = read.find(content);
  if (!id)
    return fail(error_code::malformed_input, "{}: '{}' is not in the vocabulary", token->path,
                content.substr(0, 100));
  return id;
}

result<void> reader::configure(json_place const& config) {
  FERRY_TRY(auto bos, named_token(*this, config, "bos_token"));
  FERRY_TRY(eos, named_token(*this, config, "eos_token"));
  FERRY_TRY(auto add_bos, config.find("add_bos_token"));
  if (add_bos) {
    FERRY_TRY(bool add, add_bos->flag());
    if (add && !bos && before.empty())
      return fail(error_code::malformed_input, "add_bos_token: true without a bos_token");
    bool is_there = !bos || (!before.empty() && before.front() == *bos);
    if (add && !is_there) before.insert(before.begin(), *bos);
    // Whatever the template calls its begin token.
    if (!add) before.clear();
  }
  FERRY_TRY(auto add_eos, config.find("add_eos_token"));
  if (add_eos) {
    FERRY_TRY(bool add, add_eos->flag());
    if (add && !eos && after.empty())
      return fail(error_code::malformed_input, "add_eos_token: true without an eos_token");
    bool is_there = !eos || (!after.empty() && after.back() == *eos);
    if (add && !is_there) after.push_back(*eos);
    if (!add) after.clear();
  }
  return {};
}

// Text is taken as it is, so that every byte of it comes back.
result<void> check_normalizer(json_place const& normalizer) {
  FERRY_TRY(auto type, normalizer.type());
  if (type != "Sequence")
    return fail(error_code::unsupported, "{}: the normalizer {}", normalizer.path, type);
  FERRY_TRY(auto list, normalizer.at("normalizers"));
  FERRY_TRY(auto elements, list.array());
  if (elements->empty()) return {};
  FERRY_TRY(auto first, list.element(0).type());
  return fail(error_code::unsupported, "{}: the normalizer {}", list.element(0).path, first);
}

// Without a decoder there is still only one way from such tokens to text.
result<void> check_decoder(json_place const& decoder) {
  FERRY_TRY(auto type, decoder.type());
  if (type == "ByteLevel") return {};
  if (type == "Sequence") {
    FERRY_TRY(auto list, decoder.at("decoders"));
    FERRY_TRY(auto elements, list.array());
    if (elements->size() == 1) {
      FERRY_TRY(type, list.element(0).type());
      if (type == "ByteLevel") return {};
    }
  }
  return fail(error_code::unsupported, "{}: the decoder {}", decoder.path, type);
}

result<void> check_around_model(json_place const& document) {
  FERRY_TRY(auto version, document.find("version"));
  if (version) {
    FERRY_TRY(auto text, version->text());
    if (text != "1.0") return fail(error_code::unsupported, "version: '{}', not '1.0'", text);
  }
  FERRY_TRY(auto normalizer, document.find("normalizer"));
  if (normalizer) FERRY_CHECK(check_normalizer(*normalizer));
  FERRY_TRY(auto decoder, document.find("decoder"));
  if (decoder) FERRY_CHECK(check_decoder(*decoder));
  return {};
}

result<tokenizer_parts> read_document(json_place const& document, json const* config,
                                      std::string const& config_file) {
  FERRY_CHECK(check_around_model(document));
  FERRY_TRY(auto model, document.at("model"));
  // Old files leave the type out where it shows in the fields.
  FERRY_TRY(auto type_at, model.find("type"));
  if (type_at) {
    FERRY_TRY(auto type, type_at->text());
    if (type != "BPE")
      return fail(error_code::unsupported, "{}: the model {}", type_at->path, type);
  }
  FERRY_TRY(auto splitting_at, document.find("pre_tokenizer"));
  if (!splitting_at)
    return fail(error_code::unsupported, "pre_tokenizer: none, so the tokens are not bytes");
  FERRY_TRY(auto splitting, read_pre_tokenizer(*splitting_at));

  reader read;
  FERRY_TRY(auto vocab, model.at("vocab"));
  FERRY_CHECK(read.vocabulary_from(vocab));
  FERRY_TRY(auto merging, read.merging_from(model));
  FERRY_TRY(auto added_at, document.find("added_tokens"));
  if (added_at) FERRY_CHECK(read.added_from(*added_at));
  FERRY_TRY(auto processor, document.find("post_processor"));
  if (processor) FERRY_CHECK(read.surrounding_from(*processor, 0));
  if (config) {
    if (auto done = read.configure({config, {}}); !done)
      return error{done.error().code, config_file + ": " + done.error().message,
                   done.error().where};
  }
  FERRY_TRY(auto added, added_tokens::make(std::move(read.added)));
  return tokenizer_parts{std::move(read.tokens),
                         std::move(merging),
                         std::move(splitting),
                         std::move(added),
                         std::move(read.before),
                         std::move(read.after),
                         read.eos};
}

}  // namespace

result<tokenizer_parts> read_tokenizer(std::filesystem::path const& directory) {
  auto file = directory / "tokenizer.json", config_file = directory / "tokenizer_config.json";
  FERRY_TRY(auto document, read_json(file));
  std::optional<json> config;
  if (is_in_directory(config_file)) {
    FERRY_TRY(config, read_json(config_file));
  }
  auto parts = read_document({&document, {}}, config ? &*config : nullptr, config_file.string());
  // Messages about the other file begin with its name already.
  if (parts || parts.error().message.starts_with(config_file.string())) return parts;
  return error{parts.error().code, file.string() + ": " + parts.error().message,
               parts.error().where};
}

}  // namespace ferry::deepseek
