// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// ferry-decode: every rank decodes its own prompts, and the experts are everybody's.

#include "console.hpp"
#include "decoder.hpp"
#include "launch.hpp"
#include "options.hpp"
#include "plan.hpp"
#include "prompts.hpp"
#include "report.hpp"

#include <ferry/deepseek/checkpoint.hpp>
#include <ferry/deepseek/model.hpp>
#include <ferry/deepseek/model_config.hpp>
#include <ferry/deepseek/tokenizer.hpp>
#include <ferry/ferry.hpp>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

namespace ferry::decode {
namespace {

using token_lists = std::vector<std::vector<std::int32_t>>;

result<void> show_tokens(options const& o) {
  FERRY_TRY(auto tokenizer, deepseek::tokenizer::load(o.model));
  FERRY_TRY(auto ids, tokenizer.encode(*o.show_tokens, false));
  fmt::print("{}\n", fmt::join(ids, " "));
  return {};
}

/// A directory need not have a tokenizer; one that is there must be right.
result<std::optional<deepseek::tokenizer>> load_tokenizer(options const& o) {
  std::error_code ignored;
  if (!std::filesystem::exists(o.model / "tokenizer.json", ignored))
    return std::optional<deepseek::tokenizer>();
  FERRY_TRY(auto tokenizer, deepseek::tokenizer::load(o.model));
  return std::optional(std::move(tokenizer));
}

/// Everything that can be known before the ranks meet.
struct job {
  options o;
  deepseek::model_config config;
  std::optional<deepseek::tokenizer> tokenizer;
  deepseek::checkpoint weights;
  token_lists prompts;
};

result<job> prepare(options const& o) {
  FERRY_TRY(auto config, deepseek::load_model_config(o.model));
  FERRY_TRY(auto tokenizer, load_tokenizer(o));
  FERRY_TRY(auto prompts, collect_prompts(o, config, tokenizer));
  FERRY_TRY(auto weights, deepseek::checkpoint::open(o.model));
  return job{o, std::move(config), std::move(tokenizer), std::move(weights), std::move(prompts)};
}

std::vector<sequence> sequences_of(job const& j, int rank, int num_ranks) {
  std::vector<sequence> mine;
  for (auto i : prompts_of(rank, num_ranks, j.prompts.size()))
    mine.push_back({.prompt = i,
                    .ids = j.prompts[i],
                    .prompt_tokens = j.prompts[i].size(),
                    .choice = sampler(j.o.temperature, j.o.seed, i)});
  return mine;
}

deepseek::model_options model_options_of(options const& o, plan const& sizes) {
  deepseek::model_options m;
  m.compute = o.compute;
  m.wire = o.wire;
  m.combine_wire = o.combine_wire;
  m.reduction = o.reduction;
  m.layout = o.layout;
  m.max_tokens = sizes.max_tokens;
  m.max_sequences = sizes.max_sequences;
  m.max_positions = sizes.max_positions;
  return m;
}

contribution contribution_of(decoder const& d, exchange_counters const& traffic) {
  contribution c{
      .prefilled = d.prefilled(), .decoded = d.decoded(), .steps = d.steps(), .traffic = traffic};
  for (auto const& s : d.sequences()) {
    c.prompts.push_back(s.prompt);
    c.new_tokens.emplace_back(s.new_ids().begin(), s.new_ids().end());
  }
  return c;
}

result<void> conclude(job const& j, report& r, group const& ranks, console& shown) {
  FERRY_CHECK(shown.finish());
  if (ranks.rank() != 0) return {};
  if (j.tokenizer)
    for (auto const& ids : r.tokens) {
      FERRY_TRY(auto text, j.tokenizer->decode(ids, true));
      r.texts.push_back(std::move(text));
    }
  shown.show_other_texts(j.prompts, r, ranks.size());
  print_table(r);
  if (j.o.json_file) FERRY_CHECK(write_json(r, j.o, ranks.size()));
  return {};
}

result<void> decode_on(job const& j, group const& ranks) {
  FERRY_TRY(auto shown, console::open(j.o, j.tokenizer, ranks.rank()));
  auto start = std::chrono::steady_clock::now();
  auto sizes = make_plan(j.prompts, j.o.max_new_tokens, ranks.size());
  FERRY_TRY(auto model,
            deepseek::model::load(j.weights, j.config, ranks, model_options_of(j.o, sizes)));
  std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  shown.say(fmt::format("{}: {}, {} rank{}, {} prompt{}, loaded in {:.1f} s", j.o.model.string(),
                        to_string(j.o.compute), ranks.size(), ranks.size() == 1 ? "" : "s",
                        j.prompts.size(), j.prompts.size() == 1 ? "" : "s", took.count()));
  end_rule rule{j.o.max_new_tokens, {}};
  if (!j.o.ignore_eos)
    rule.eos_ids.assign(j.config.eos_token_ids.begin(), j.config.eos_token_ids.end());
  decoder d(model, ranks, sizes, j.config.vocab_size, sequences_of(j, ranks.rank(), ranks.size()),
            std::move(rule), shown);
  FERRY_CHECK(d.prefill());
  FERRY_CHECK(d.decode());
  FERRY_TRY(auto r, gather(ranks, contribution_of(d, model.counters())));
  return conclude(j, r, ranks, shown);
}

/// `rank` is for the message of whoever calls; -1 until it is known.
result<void> run(options const& o, int& rank) {
  if (o.show_tokens) return show_tokens(o);
  FERRY_TRY(auto j, prepare(o));
  FERRY_TRY(auto ranks, join_ranks(o.timeout));
  rank = ranks.rank();
  return decode_on(j, ranks);
}

int status_of(error const& e) {
  return e.code == error_code::timeout || e.code == error_code::unreachable ? lost : failed;
}

int decode_main(int argc, char** argv) {
  auto parsed = parse(argc, argv);
  if (auto* status = std::get_if<int>(&parsed)) return *status;
  int rank = -1;
  auto done = run(std::get<options>(parsed), rank);
  if (done) {
    end_launch();
    return succeeded;
  }
  std::fflush(stdout);
  auto who = rank < 0 ? std::string() : fmt::format("rank {}: ", rank);
  fmt::print(stderr, "ferry-decode: {}{}: {}\n", who, to_string(done.error().code),
             done.error().message);
  return status_of(done.error());
}

}  // namespace
}  // namespace ferry::decode

int main(int argc, char** argv) {
  try {
    return ferry::decode::decode_main(argc, argv);
  } catch (std::exception const& e) {
    std::fprintf(stderr, "ferry-decode: %s\n", e.what());
    return ferry::decode::failed;
  }
}
