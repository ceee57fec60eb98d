// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// ferry-decode: every rank decodes its own prompts, and the experts are everybody's.

#include "agreement.hpp"
#include "balancing.hpp"
#include "console.hpp"
#include "decoder.hpp"
#include "launch.hpp"
#include "options.hpp"
#include "plan.hpp"
#include "prompts.hpp"
#include "rank_device.hpp"
#include "report.hpp"
#include "texts.hpp"

#include <ferry/deepseek/checkpoint.hpp>
#include <ferry/deepseek/model.hpp>
#include <ferry/deepseek/model_config.hpp>
#include <ferry/deepseek/tokenizer.hpp>
#include <ferry/ferry.hpp>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ferry::decode {
namespace {

using token_lists = std::vector<std::vector<std::int32_t>>;

result<void> show_tokens(options const& o) {
  FERRY_TRY(auto tokenizer, deepseek::tokenizer::load(o.model));
  FERRY_TRY(auto ids, tokenizer.encode(*o.show_tokens, false));
  fmt::print("{}\n", fmt::join(ids, " "));
  return check_shown();
}

/// A directory need not have a tokenizer; one that is there must be right.
result<std::optional<deepseek::tokenizer>> load_tokenizer(options const& o) {
  // A link that leads nowhere is there, and reading it fails.
  std::error_code ignored;
  auto found = std::filesystem::symlink_status(o.model / "tokenizer.json", ignored).type();
  if (found == std::filesystem::file_type::not_found) return std::optional<deepseek::tokenizer>();
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
  std::vector<std::int32_t> eos_ids;  ///< none with --ignore-eos
  std::optional<placement> experts_at;
};

/// The files' end tokens; the tokenizer's where they name none.
std::vector<std::int32_t> eos_ids_of(options const& o, deepseek::model_config const& config,
                                     std::optional<deepseek::tokenizer> const& tokenizer) {
  if (o.ignore_eos) return {};
  if (config.eos_token_ids.empty() && tokenizer)
    if (auto id = tokenizer->eos_id()) return {*id};
  return {config.eos_token_ids.begin(), config.eos_token_ids.end()};
}

result<job> prepare(options const& o) {
  FERRY_TRY(auto config, deepseek::load_model_config(o.model));
  FERRY_TRY(auto tokenizer, load_tokenizer(o));
  FERRY_TRY(auto prompts, collect_prompts(o, config, tokenizer));
  FERRY_TRY(auto weights, deepseek::checkpoint::open(o.model));
  auto eos_ids = eos_ids_of(o, config, tokenizer);
  std::optional<placement> experts_at;
  if (o.balance.placement_file) {
    FERRY_TRY(experts_at, read_placement(*o.balance.placement_file));
  }
  return job{o,
             std::move(config),
             std::move(tokenizer),
             std::move(weights),
             std::move(prompts),
             std::move(eos_ids),
             std::move(experts_at)};
}

/// Two models with one config.json differ in these; all of the weights would take minutes to read.
result<std::string> sample_of(deepseek::checkpoint const& weights) {
  std::string all;
  for (auto const* name : {"model.embed_tokens.weight", "model.norm.weight"}) {
    FERRY_TRY(auto tensor, weights.tensor(name));
    all += fingerprint(tensor.data.first(std::min<std::size_t>(tensor.data.size(), 65536)));
  }
  return all;
}

result<void> check_job(job const& j, group const& ranks) {
  auto mine = settings_of(j.o, j.prompts);
  mine.push_back({"list of end tokens", fmt::format("{}", fmt::join(j.eos_ids, " "))});
  std::ifstream in(j.o.model / "config.json", std::ios::binary);
  std::string config(std::istreambuf_iterator<char>(in), {});
  mine.push_back({"config.json", fingerprint(config), false});
  mine.push_back(
      {"--placement", j.experts_at ? fingerprint(to_json(*j.experts_at)) : "not given", false});
  FERRY_TRY(auto sample, sample_of(j.weights));
  mine.push_back({"model's weights", sample, false});
  return check_agreement(ranks, mine);
}

std::vector<sequence> sequences_of(job const& j, int rank, int num_ranks) {
  std::vector<sequence> mine;
  for (auto i : prompts_of(rank, num_ranks, j.prompts.size()))
    mine.push_back({.prompt = i, .ids = j.prompts[i], .prompt_tokens = j.prompts[i].size()});
  return mine;
}

/// What it draws depends on seed and prompt alone, so that a text does not depend on how many ranks
/// or other prompts there are.
result<deepseek::token_sampler> sampler_of(options const& o, device const& where, int max_rows,
                                           std::span<sequence const> texts, queue& q) {
  FERRY_TRY(auto made, deepseek::token_sampler::make(
                           where, {.slots = std::max(1, static_cast<int>(texts.size())),
                                   .max_rows = max_rows,
                                   .temperature = static_cast<float>(o.temperature),
                                   .seed = o.seed}));
  for (std::size_t i = 0; i < texts.size(); ++i)
    FERRY_CHECK(made.begin(q, static_cast<int>(i), texts[i].prompt));
  return made;
}

deepseek::model_options model_options_of(job const& j, plan const& sizes, device where) {
  options const& o = j.o;
  deepseek::model_options m;
  m.experts_at = j.experts_at;
  m.replicas = o.balance.replicas;
  m.sampled_tokens = sampled_tokens(o.balance);
  m.where = std::move(where);
  m.products = o.products;
  m.compute = o.compute;
  m.wire = o.wire;
  m.combine_wire = o.combine_wire;
  m.reduction = o.reduction;
  m.layout = o.layout;
  m.max_tokens = sizes.max_tokens;
  m.max_sequences = sizes.max_sequences;
  m.max_positions = sizes.max_positions;
  m.microbatches = o.steps.most_microbatches();
  return m;
}

contribution contribution_of(decoder const& d, exchange_counters const& traffic,
                             balance_report const& balance) {
  contribution c{.prefilled = d.prefilled(),
                 .decoded = d.decoded(),
                 .steps = d.steps(),
                 .traffic = traffic,
                 .balance = balance};
  for (auto const& s : d.sequences()) {
    c.prompts.push_back(s.prompt);
    c.new_tokens.emplace_back(s.new_ids().begin(), s.new_ids().end());
    c.digests.push_back(s.logits_digest);
  }
  return c;
}

result<void> conclude(job const& j, report& r, group const& ranks, console& shown) {
  FERRY_CHECK(shown.finish());
  if (ranks.rank() != 0) return {};
  if (j.tokenizer)
    for (auto const& ids : r.tokens) r.texts.push_back(text_of(*j.tokenizer, ids));
  shown.show_other_texts(j.prompts, r, ranks.size());
  print_table(r);
  if (j.o.json_file) FERRY_CHECK(write_json(r, j.o, ranks.size()));
  return check_shown();
}

/// Collective.
result<void> write_pictures(options const& o, group const& ranks, trace const& recorded,
                            console& shown) {
  FERRY_TRY(auto const spans, gather_spans(ranks, recorded));
  if (ranks.rank() != 0) return {};
  if (recorded.dropped() > 0)
    shown.say(fmt::format("{} spans found no room in the trace of rank 0", recorded.dropped()));
  if (o.trace_file) FERRY_CHECK(write_trace(spans, *o.trace_file));
  if (o.timeline_file) FERRY_CHECK(write_timeline(spans, *o.timeline_file));
  return {};
}

result<void> decode_on(job const& j, group const& ranks) {
  FERRY_TRY(auto where, device_of_rank(j.o.device, ranks.rank()));
  FERRY_CHECK(check_steps(j.o.steps, where));
  FERRY_TRY(auto shown, console::open(j.o, j.tokenizer, ranks.rank()));
  auto start = std::chrono::steady_clock::now();
  auto sizes = make_plan(j.prompts, j.o.max_new_tokens, ranks.size());
  FERRY_TRY(auto model,
            deepseek::model::load(j.weights, j.config, ranks, model_options_of(j, sizes, where)));
  std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  shown.say(fmt::format("{}: {} on {}, products by {}, {} rank{}, {} prompt{}, loaded in {:.1f} s",
                        j.o.model.string(), to_string(j.o.compute), where.name(), model.products(),
                        ranks.size(), ranks.size() == 1 ? "" : "s", j.prompts.size(),
                        j.prompts.size() == 1 ? "" : "s", took.count()));
  end_rule rule{j.o.max_new_tokens, j.eos_ids};
  FERRY_TRY(auto runner, step_runner::make(model, ranks, j.o.steps));
  auto texts = sequences_of(j, ranks.rank(), ranks.size());
  FERRY_TRY(auto choice, sampler_of(j.o, where, sizes.max_tokens, texts, runner.compute()));
  decoder d(runner, ranks, sizes, std::move(choice), std::move(texts), std::move(rule), shown);
  FERRY_CHECK(d.prefill());
  FERRY_TRY(auto balance, balancing::make(model, ranks, j.o.balance));
  d.between_steps([&balance] { return balance.after_step(); });
  FERRY_CHECK(d.decode());
  FERRY_TRY(auto const balanced, balance.finish());
  if (trace const* const recorded = runner.recorded())
    FERRY_CHECK(write_pictures(j.o, ranks, *recorded, shown));
  FERRY_TRY(auto r, gather(ranks, contribution_of(d, model.counters(), balanced)));
  r.overlapped_steps = runner.overlapped_steps();
  return conclude(j, r, ranks, shown);
}

/// `rank` is for the message of whoever calls; -1 until it is known.
result<void> run(options const& o, int& rank) {
  if (o.show_tokens) return show_tokens(o);
  FERRY_TRY(auto j, prepare(o));
  FERRY_TRY(auto ranks, join_ranks({.timeout = o.timeout, .ranks_per_node = o.ranks_per_node}));
  rank = ranks.rank();
  FERRY_CHECK(check_job(j, ranks));
  return decode_on(j, ranks);
}

int status_of(error const& e) {
  return e.code == error_code::timeout || e.code == error_code::unreachable ? lost : failed;
}

int decode_main(int argc, char** argv) {
  auto parsed = parse(argc, argv);
  if (auto* status = std::get_if<int>(&parsed))
    return *status == succeeded && !std::cout.flush() ? failed : *status;
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
