// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// Holds docs/kernel_abi.md against the structs that kernels on GPUs take. KERNEL_ABI_TABLES=FILE
// writes the tables as they should stand there.

#include "kernels/gpu_arguments.hpp"

#include "data/test_data.hpp"

#include <ferry/kernels/credit.hpp>
#include <ferry/kernels/gather.hpp>
#include <ferry/kernels/give_back.hpp>
#include <ferry/kernels/probe.hpp>
#include <ferry/kernels/receive.hpp>
#include <ferry/kernels/send.hpp>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace ferry;

struct field {
  char const* name;
  std::size_t offset;
  std::size_t size;
  char const* meaning;
};
struct table {
  std::string name;
  std::size_t size;
  std::vector<field> fields;
};

#define FIELD(type, member, meaning) \
  { #member, offsetof(type, member), sizeof(type::member), meaning }

template <class Kernel>
table arguments(char const* kernel) {
  using all = gpu_arguments<Kernel>;
  return {
      fmt::format("gpu_arguments<{}>", kernel),
      sizeof(all),
      {FIELD(all, blocks, "workgroups of the launch"),
       FIELD(all, teams, "teams (wavefronts) per workgroup"),
       FIELD(all, scratch, "[blocks * teams, scratch_stride]; used by the forms through memory"),
       FIELD(all, scratch_stride, "bytes"), FIELD(all, own_flags, "peers.flags[peers.rank]"),
       FIELD(all, own_rows, "peers.rows[peers.rank]"), FIELD(all, waits, "gpu_waits"),
       FIELD(all, peers, "peer_table"), FIELD(all, kernel, "the kernel's own struct")}};
}

table waits() {
  return {"gpu_waits",
          sizeof(gpu_waits),
          {FIELD(gpu_waits, status, "status_record of this rank's own window"),
           FIELD(gpu_waits, failed, "word in device memory: not 0 once a wait has failed"),
           FIELD(gpu_waits, timeout, "ticks of the 100 MHz clock until a wait gives up"),
           FIELD(gpu_waits, patience, "ticks until a waiter names whom it waits for"),
           FIELD(gpu_waits, slot, "for the failure record"),
           FIELD(gpu_waits, told, "word of the host, set to 1 after the record; may be null")}};
}
table peers() {
  return {"peer_table",
          sizeof(peer_table),
          {FIELD(peer_table, flags, "[64] base of each rank's flags"),
           FIELD(peer_table, rows, "[64] base of each rank's rows, less the bytes of its flags"),
           FIELD(peer_table, rank, "this rank")}};
}
table send() {
  return {"send_rows",
          sizeof(send_rows),
          {FIELD(send_rows, frame, "step_frame"),
           FIELD(send_rows, tokens, "[T, hidden] of `type`, or opaque bytes"),
           FIELD(send_rows, token_stride, "bytes"), FIELD(send_rows, type, "dtype of the tokens"),
           FIELD(send_rows, scales, "opaque rows: [T, scale_bytes]"),
           FIELD(send_rows, scale_stride, "bytes"), FIELD(send_rows, caller, "caller_routing"),
           FIELD(send_rows, num_tokens, "T, unless it lies in device memory"),
           FIELD(send_rows, num_tokens_there, "T in device memory, or null"),
           FIELD(send_rows, round, "round of the step, from 0"),
           FIELD(send_rows, layer, "whose table maps the choices"),
           FIELD(send_rows, header_only, "1: only says that the returned array is free")}};
}
table routing() {
  return {"caller_routing",
          sizeof(caller_routing),
          {FIELD(caller_routing, ids, "[T, topk] expert ids, -1 where there is none"),
           FIELD(caller_routing, id_stride, "elements"),
           FIELD(caller_routing, ids_are_int64, "1: ids of 64 bits, 0: of 32"),
           FIELD(caller_routing, weights, "[T, topk] f32, or null: all ones"),
           FIELD(caller_routing, weight_stride, "elements")}};
}
table receive() {
  return {"receive_rows",
          sizeof(receive_rows),
          {FIELD(receive_rows, frame, "step_frame"), FIELD(receive_rows, round, "from 0"),
           FIELD(receive_rows, layer, "whose loads are counted")}};
}
table credit() {
  return {"credit_round",
          sizeof(credit_round),
          {FIELD(credit_round, frame, "step_frame"), FIELD(credit_round, round, "from 0")}};
}
table give_back() {
  return {"return_rows",
          sizeof(return_rows),
          {FIELD(return_rows, frame, "step_frame"),
           FIELD(return_rows, rows, "[positions, hidden] of `type`: what the experts made"),
           FIELD(return_rows, row_stride, "bytes"), FIELD(return_rows, type, "dtype of the rows"),
           FIELD(return_rows, round, "from 0"),
           FIELD(return_rows, credit_only, "1: a released step, only `done` goes out"),
           FIELD(return_rows, summed,
                 "1: `rows` are [ranks, max_tokens, hidden], summed by the caller")}};
}
table probe() {
  return {"probe_windows",
          sizeof(probe_windows),
          {FIELD(probe_windows, frame, "step_frame"),
           FIELD(probe_windows, rounds, "how often each place is written and looked at"),
           FIELD(probe_windows, wrong, "[1] u32 pieces that were not there, counted up")}};
}
table gather() {
  return {
      "gather_rows",
      sizeof(gather_rows),
      {FIELD(gather_rows, frame, "step_frame"), FIELD(gather_rows, output, "[T, hidden] of `type`"),
       FIELD(gather_rows, output_stride, "bytes"),
       FIELD(gather_rows, added, "[T, hidden] of `type`, or null"),
       FIELD(gather_rows, added_stride, "bytes"),
       FIELD(gather_rows, type, "dtype of output and added rows"),
       FIELD(gather_rows, round, "from 0"),
       FIELD(gather_rows, skip, "1: a released step, nothing comes home")}};
}
table frame() {
  return {"step_frame",
          sizeof(step_frame),
          {FIELD(step_frame, shape, "exchange_shape"),
           FIELD(step_frame, flags, "{offset, stride, items} of arrived, back; from flags_offset"),
           FIELD(step_frame, slot,
                 "{offset, stride, items} of rows, returned, scales, routes, returned_scales, "
                 "counts; from slot_offset"),
           FIELD(step_frame, flags_offset, "of this slot's flags in every window"),
           FIELD(step_frame, slot_offset, "of its rows in every window"),
           FIELD(step_frame, layout, "positions"), FIELD(step_frame, memory, "step_memory"),
           FIELD(step_frame, placed, "expert_map")}};
}
table shape() {
  return {
      "exchange_shape",
      sizeof(exchange_shape),
      {FIELD(exchange_shape, rank, "this rank"), FIELD(exchange_shape, ranks, "at most 64"),
       FIELD(exchange_shape, experts, "of all ranks"), FIELD(exchange_shape, topk, "at most 32"),
       FIELD(exchange_shape, hidden, "columns of a row"),
       FIELD(exchange_shape, max_tokens, "most tokens of a rank in a step"),
       FIELD(exchange_shape, round_tokens, "most tokens of a rank in a round"),
       FIELD(exchange_shape, chunk_tokens, "1, 2, 4, 8 or 16"),
       FIELD(exchange_shape, per_choice, "1: every choice's row comes home"),
       FIELD(exchange_shape, sent, "wire of rows to the experts"),
       FIELD(exchange_shape, returned, "wire of rows home"),
       FIELD(exchange_shape, mixed,
             "bit 0: E4M3 rows to the experts are of both flavours, `sent` is this rank's; bit 1: "
             "rows home, `returned`"),
       FIELD(exchange_shape, most_blocks, "most blocks of a launch; 0: all launches have the same"),
       FIELD(exchange_shape, row_bytes, "of a row to the experts"),
       FIELD(exchange_shape, scale_bytes, "of its scales"),
       FIELD(exchange_shape, home_bytes, "of a row home"),
       FIELD(exchange_shape, home_scale_bytes, "of its scales")}};
}
table layout() {
  return {"positions",
          sizeof(positions),
          {FIELD(positions, capacity, "positions in all"),
           FIELD(positions, per_expert, "0, or positions of each expert (padded)"),
           FIELD(positions, align, "each group's start is a multiple of this"),
           FIELD(positions, in_place, "1: rows stay in the inbox, only the index is written")}};
}
table memory() {
  static_assert(num_phases == 4 && static_cast<int>(tally::count_) == 8, "as the words below say");
  return {"step_memory",
          sizeof(step_memory),
          {FIELD(step_memory, choices, "[max_tokens, topk] i32"),
           FIELD(step_memory, weights, "[max_tokens, topk] f32"),
           FIELD(step_memory, num_tokens, "[1] i32"),
           FIELD(step_memory, expert_counts, "[experts] u32"),
           FIELD(step_memory, seen_tokens, "[ranks] i32"),
           FIELD(step_memory, rounds, "[1] i32"),
           FIELD(step_memory, maps, "[ranks, chunks of a step] u16"),
           FIELD(step_memory, plan, "[ranks, max_tokens, topk] i32"),
           FIELD(step_memory, plan_weights, "[ranks, max_tokens, topk] f32"),
           FIELD(step_memory, cursors, "[max(most_blocks, ranks), local experts] i64"),
           FIELD(step_memory, starts, "[local experts] i32"),
           FIELD(step_memory, counts, "[local experts] i32"),
           FIELD(step_memory, wanted, "[local experts] i32"),
           FIELD(step_memory, end, "[1] i32"),
           FIELD(step_memory, index, "[capacity] i32, in_place only"),
           FIELD(step_memory, rows, "[capacity, row_stride]"),
           FIELD(step_memory, scales, "[capacity, scale_stride]"),
           FIELD(step_memory, row_stride, "bytes"),
           FIELD(step_memory, scale_stride, "bytes"),
           FIELD(step_memory, ticks, "[4, most_blocks] u64"),
           FIELD(step_memory, tallies, "[8] u64, in the order of `tally`"),
           FIELD(step_memory, receives_fnuz, "[ranks] bytes: 1 where fp8 is FNUZ"),
           FIELD(step_memory, owners, "[experts] i32: rank of each expert")}};
}

table placed() {
  return {
      "expert_map",
      sizeof(expert_map),
      {FIELD(expert_map, first,
             "[layers, experts + 1] i32: where an expert's candidates begin; null: choices name "
             "slots"),
       FIELD(expert_map, candidates, "[layers, slots] i32: slots that serve the expert"),
       FIELD(expert_map, loads, "[layers, most slots of a rank] u64: rows that came, or null"),
       FIELD(expert_map, samples, "[sampled_tokens, layers, topk] i32, or null"),
       FIELD(expert_map, experts, "that choices may name"),
       FIELD(expert_map, layers, "of the tables, counters and samples"),
       FIELD(expert_map, sampled_tokens, "0: nothing is sampled")}};
}

std::vector<table> all_tables() {
  return {arguments<send_rows>("send_rows"),
          waits(),
          peers(),
          send(),
          routing(),
          receive(),
          credit(),
          give_back(),
          gather(),
          probe(),
          frame(),
          shape(),
          layout(),
          memory(),
          placed()};
}

std::string markdown(table const& t) {
  std::string text =
      fmt::format("### {}: {} bytes\n\n| field | offset | size | meaning |\n|---|---|---|---|\n",
                  t.name, t.size);
  for (field const& f : t.fields)
    text += fmt::format("| `{}` | {} | {} | {} |\n", f.name, f.offset, f.size, f.meaning);
  return text;
}

TEST(kernel_abi, is_what_the_document_says) {
  std::ifstream file(test::test_data() / "../../docs/kernel_abi.md");
  std::stringstream document;
  document << file.rdbuf();
  std::string all;
  for (table const& t : all_tables()) {
    std::string const text = markdown(t);
    EXPECT_NE(document.str().find(text), std::string::npos) << "should stand there:\n" << text;
    all += text + "\n";
  }
  if (char const* const path = std::getenv("KERNEL_ABI_TABLES")) std::ofstream(path) << all;
}

// No field is missing: between two there is at most padding.
TEST(kernel_abi, names_every_byte_that_means_something) {
  for (table const& t : all_tables()) {
    std::size_t end = 0;
    for (field const& f : t.fields) {
      EXPECT_GE(f.offset, end) << t.name << "." << f.name;
      EXPECT_LT(f.offset - end, 8u) << t.name << " before " << f.name;
      end = f.offset + f.size;
    }
    EXPECT_LT(t.size - end, 8u) << t.name;
  }
}

struct anything {
  template <class T>
  operator T() const;
};
template <class T, std::size_t... I>
constexpr bool takes(std::index_sequence<I...>) {
  return requires {
    T{(static_cast<void>(I), anything{})...};
  };
}
/// How many members an aggregate without arrays has.
template <class T, std::size_t N = 40>
constexpr std::size_t num_members() {
  if constexpr (takes<T>(std::make_index_sequence<N>()))
    return N;
  else
    return num_members<T, N - 1>();
}

// Nor is one that would lie where another one's padding is.
TEST(kernel_abi, names_every_member) {
  EXPECT_EQ(arguments<send_rows>("").fields.size(), num_members<gpu_arguments<send_rows>>());
  EXPECT_EQ(waits().fields.size(), num_members<gpu_waits>());
  EXPECT_EQ(send().fields.size(), num_members<send_rows>());
  EXPECT_EQ(routing().fields.size(), num_members<caller_routing>());
  EXPECT_EQ(receive().fields.size(), num_members<receive_rows>());
  EXPECT_EQ(credit().fields.size(), num_members<credit_round>());
  EXPECT_EQ(give_back().fields.size(), num_members<return_rows>());
  EXPECT_EQ(gather().fields.size(), num_members<gather_rows>());
  EXPECT_EQ(probe().fields.size(), num_members<probe_windows>());
  EXPECT_EQ(frame().fields.size(), num_members<step_frame>());
  EXPECT_EQ(shape().fields.size(), num_members<exchange_shape>());
  EXPECT_EQ(layout().fields.size(), num_members<positions>());
  EXPECT_EQ(memory().fields.size(), num_members<step_memory>());
  EXPECT_EQ(placed().fields.size(), num_members<expert_map>());
}

TEST(kernel_abi, fits_what_devices_take_as_arguments) {
  EXPECT_LE(sizeof(gpu_arguments<send_rows>), most_argument_bytes);
  EXPECT_LE(sizeof(gpu_arguments<gather_rows>), most_argument_bytes);
  EXPECT_EQ(offsetof(gpu_arguments<send_rows>, kernel),
            offsetof(gpu_arguments<gather_rows>, kernel));
}

}  // namespace
