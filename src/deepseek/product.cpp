// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "deepseek/product.hpp"

#include <ferry/base/number_formats.hpp>

#include "base/fail.hpp"

#include <omp.h>

#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

namespace ferry::deepseek {
namespace {

/// Keeps oneDNN on the calling thread: ranks may be threads, and idle threads would fight for
/// their cores. What the program set for itself comes back.
class one_thread {
 public:
  one_thread() : before_(omp_get_max_threads()) {
    if (before_ != 1) omp_set_num_threads(1);
  }
  ~one_thread() {
    if (before_ != 1) omp_set_num_threads(before_);
  }
  one_thread(one_thread const&) = delete;

 private:
  int before_;
};

dnnl::engine const& cpu() {
  static dnnl::engine const engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::memory::data_type type_of(dtype type) {
  return type == dtype::bf16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

error as_error(dnnl::error const& e, int in, int out, dtype type) {
  error_code const code = e.status == dnnl_out_of_memory   ? error_code::out_of_memory
                          : e.status == dnnl_unimplemented ? error_code::unsupported
                                                           : error_code::internal;
  return fail(code, "{} product of {} by {} features: {}", to_string(type), in, out, e.what());
}

dnnl::matmul::primitive_desc describe(product_shape const& shape, int rows,
                                      dnnl::memory::desc const& weights) {
  using tag = dnnl::memory::format_tag;
  dnnl::memory::desc const x({rows, shape.in}, type_of(shape.type), tag::ab);
  dnnl::memory::desc const y({rows, shape.out}, dnnl::memory::data_type::f32, tag::ab);
  return {dnnl::matmul::desc(x, weights, y), cpu()};
}

/// A kernel for one row count and the two memory objects that it is run with.
struct call {
  dnnl::matmul kernel;
  dnnl::memory x;
  dnnl::memory y;
};

/// Everything that one thread keeps: look-up is two array accesses.
struct thread_calls {
  dnnl::stream stream{cpu()};
  std::vector<std::unique_ptr<std::array<call, call_rows::kinds>>> by_shape;

  call& find(product_shape const& shape, int rows) {
    if (by_shape.size() <= shape.id) by_shape.resize(shape.id + 1);
    auto& calls = by_shape[shape.id];
    if (!calls) calls = std::make_unique<std::array<call, call_rows::kinds>>();
    call& c = (*calls)[static_cast<std::size_t>(call_rows::index(rows))];
    if (!c.kernel) {
      auto const description = describe(shape, rows, shape.packed);
      c.x = dnnl::memory(description.src_desc(), cpu(), DNNL_MEMORY_NONE);
      c.y = dnnl::memory(description.dst_desc(), cpu(), DNNL_MEMORY_NONE);
      c.kernel = dnnl::matmul(description);
    }
    return c;
  }
};

thread_calls& calls_of_this_thread() {
  thread_local thread_calls calls;
  return calls;
}

/// Rows as different as the probe needs them: small numbers of both signs, no two rows alike.
std::vector<float> probing_rows(std::size_t count) {
  std::vector<float> values(count);
  std::uint32_t state = 0x9E37'79B9u;
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(static_cast<std::int32_t>(state)) * 0x1p-31f;
  }
  return values;
}

std::vector<std::byte> as_type(std::vector<float> const& values, dtype type) {
  std::vector<std::byte> bytes(values.size() * bytes_of(type));
  if (type == dtype::f32) {
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    bf16 const code = from_float<bf16>(values[i]);
    std::memcpy(bytes.data() + i * sizeof code, &code, sizeof code);
  }
  return bytes;
}

enum class verdict { unknown, independent, dependent };

/// Compares every allowed row count with calls of 16 rows, bit by bit.
verdict probe(product_shape const& shape, dnnl::memory const& weights) {
  auto const in = static_cast<std::size_t>(shape.in);
  auto const out = static_cast<std::size_t>(shape.out);
  auto const x = as_type(probing_rows(call_rows::most * in), shape.type);
  std::size_t const x_row = in * bytes_of(shape.type);
  std::vector<float> expected(call_rows::most * out);
  std::vector<float> found(call_rows::most * out);
  for (std::size_t row = 0; row < call_rows::most; row += call_rows::fixed) {
    if (!shape.multiply(weights, x.data() + row * x_row, expected.data() + row * out,
                        call_rows::fixed)) {
      return verdict::dependent;
    }
  }
  std::size_t telling = 0;  // weights of zeros would agree with everything
  for (float value : expected) telling += std::isfinite(value) && value != 0;
  if (telling * 2 < expected.size()) return verdict::unknown;
  for (int i = 0; i < call_rows::kinds; ++i) {
    int const rows = call_rows::count(i);
    if (!shape.multiply(weights, x.data(), found.data(), rows) ||
        std::memcmp(found.data(), expected.data(),
                    static_cast<std::size_t>(rows) * out * sizeof(float)) != 0) {
      return verdict::dependent;
    }
  }
  return verdict::independent;
}

struct known_shape {
  product_shape shape;
  verdict rows = verdict::unknown;
};

struct registry {
  std::mutex mutex;
  std::map<std::tuple<int, int, dtype>, std::unique_ptr<known_shape>> shapes;
};

/// Lives until the process ends: threads that outlast main may still hold shapes.
registry& shapes() {
  static auto* const all = new registry;
  return *all;
}

}  // namespace

result<product_shape const*> find_product(int in, int out, dtype type) {
  registry& all = shapes();
  std::lock_guard const lock(all.mutex);
  auto& known = all.shapes[{in, out, type}];
  if (known) return &known->shape;
  try {
    one_thread const alone;
    auto fresh = std::make_unique<known_shape>();
    fresh->shape.in = in;
    fresh->shape.out = out;
    fresh->shape.type = type;
    fresh->shape.id = all.shapes.size() - 1;
    fresh->shape.packed =
        describe(fresh->shape, call_rows::fixed,
                 dnnl::memory::desc({in, out}, type_of(type), dnnl::memory::format_tag::any))
            .weights_desc();
    known = std::move(fresh);
    return &known->shape;
  } catch (dnnl::error const& e) {
    all.shapes.erase({in, out, type});
    return as_error(e, in, out, type);
  }
}

bool product_shape::rows_are_independent(dnnl::memory const& weights) const {
  registry& all = shapes();
  std::lock_guard const lock(all.mutex);
  auto& known = *all.shapes.at({in, out, type});
  if (known.rows == verdict::unknown) known.rows = probe(*this, weights);
  return known.rows == verdict::independent;
}

result<dnnl::memory> product_shape::pack(void const* rows) const {
  try {
    one_thread const alone;
    // Seen as [in, out], the matrix [out, in] is column-major.
    dnnl::memory::desc const plain({in, out}, type_of(type), dnnl::memory::format_tag::ba);
    dnnl::memory from(plain, cpu(), const_cast<void*>(rows));
    dnnl::memory to(packed, cpu());
    dnnl::reorder(from, to).execute(calls_of_this_thread().stream, from, to);
    return to;
  } catch (dnnl::error const& e) {
    return as_error(e, in, out, type);
  }
}

result<void> product_shape::unpack(dnnl::memory const& weights, void* rows) const {
  try {
    one_thread const alone;
    dnnl::memory::desc const plain({in, out}, type_of(type), dnnl::memory::format_tag::ba);
    dnnl::memory from = weights;
    dnnl::memory to(plain, cpu(), rows);
    dnnl::reorder(from, to).execute(calls_of_this_thread().stream, from, to);
    return {};
  } catch (dnnl::error const& e) {
    return as_error(e, in, out, type);
  }
}

result<void> product_shape::multiply(dnnl::memory const& weights, void const* x, float* y,
                                     int rows) const {
  try {
    one_thread const alone;
    thread_calls& mine = calls_of_this_thread();
    call& c = mine.find(*this, rows);
    dnnl_exec_arg_t const arguments[] = {
        {DNNL_ARG_SRC, c.x.get()}, {DNNL_ARG_WEIGHTS, weights.get()}, {DNNL_ARG_DST, c.y.get()}};
    dnnl_status_t status = dnnl_memory_set_data_handle(c.x.get(), const_cast<void*>(x));
    if (status == dnnl_success) status = dnnl_memory_set_data_handle(c.y.get(), y);
    if (status == dnnl_success) {
      status = dnnl_primitive_execute(c.kernel.get(), mine.stream.get(), 3, arguments);
    }
    if (status == dnnl_success) return {};
    return fail(error_code::internal, "oneDNN answers {} to a product of {} rows by {} by {}",
                static_cast<int>(status), rows, in, out);
  } catch (dnnl::error const& e) {
    return as_error(e, in, out, type);
  }
}

}  // namespace ferry::deepseek
