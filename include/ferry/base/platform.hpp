// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The one place that knows compilers. Everything else in ferry is plain C++20.
#pragma once

#if defined(__CUDACC__) || defined(__HIP__)
#define FERRY_HOST_DEVICE __host__ __device__
#define FERRY_FN __host__ __device__ inline __attribute__((always_inline))
#elif defined(FERRY_COMPILER_INLINES)
#define FERRY_HOST_DEVICE
#define FERRY_FN inline
#else
#define FERRY_HOST_DEVICE
#define FERRY_FN inline __attribute__((always_inline))
#endif

/// For a lambda, behind its parameters: inlined like the functions above. A kernel that calls a
/// function keeps its registers in memory. Where the compiler is left to choose, code compiles in a
/// fraction of the time and runs slower: that is for lanes that are played.
#if defined(FERRY_COMPILER_INLINES)
#define FERRY_INLINED
#else
#define FERRY_INLINED __attribute__((always_inline))
#endif

/// How many threads a block of a kernel may have, and on how few registers the kernel must do: so
/// many of its teams share one unit of an AMD GPU. An NVIDIA GPU's teams need half as many.
#if defined(__HIP__)
#define FERRY_KERNEL_BOUNDS(threads, teams_on_a_unit) __launch_bounds__(threads, teams_on_a_unit)
#else
#define FERRY_KERNEL_BOUNDS(threads, teams_on_a_unit) __launch_bounds__(threads, 1)
#endif

/// A kernel's parameter that is read where the launch has put it.
#if defined(__CUDACC__)
#define FERRY_PARAMETER __grid_constant__
#else
#define FERRY_PARAMETER
#endif

/// What the target of this device pass can do. Row stores that write through to all observers
/// need no write-back before a flag; fp8 instructions convert to one of the two flavours of E4M3.
#if defined(__gfx942__) || defined(__gfx950__)
#define FERRY_STORES_WRITE_THROUGH 1
#else
#define FERRY_STORES_WRITE_THROUGH 0
#endif
#if defined(__gfx942__)
#define FERRY_CONVERTS_TO_FNUZ 1
#else
#define FERRY_CONVERTS_TO_FNUZ 0
#endif
#if defined(__gfx950__) || (defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890)
#define FERRY_CONVERTS_TO_OCP 1
#else
#define FERRY_CONVERTS_TO_OCP 0
#endif

/// 1 where a product and a sum in one rounding are one instruction, and not a call.
#if defined(__FMA__) || defined(__CUDACC__) || defined(__HIP__) || defined(__aarch64__)
#define FERRY_HAS_FMA 1
#else
#define FERRY_HAS_FMA 0
#endif

/// Loops over what a lane holds become straight code: an array that is indexed by a running number
/// cannot stay in registers.
#if defined(__clang__) || defined(__CUDACC__)
#define FERRY_UNROLL _Pragma("unroll")
#else
#define FERRY_UNROLL _Pragma("GCC unroll 32")
#endif

/// Code that runs only when something went wrong stays out of the hot path's cache lines.
#define FERRY_COLD __attribute__((noinline, cold))

/// 1 where ThreadSanitizer watches: tests play fewer rounds there.
#if defined(__SANITIZE_THREAD__)
#define FERRY_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FERRY_THREAD_SANITIZER 1
#endif
#endif
#ifndef FERRY_THREAD_SANITIZER
#define FERRY_THREAD_SANITIZER 0
#endif

/// Tells the core that this thread spins; whether it knows an x86-64 level ("v3"), which code for
/// that level needs.
#if defined(__x86_64__)
#define FERRY_PAUSE() __builtin_ia32_pause()
#define FERRY_CPU_KNOWS(level) __builtin_cpu_supports("x86-64-" level)
#else
#define FERRY_PAUSE() void()
#define FERRY_CPU_KNOWS(level) false
#endif

/// A broken precondition is a bug of the caller inside ferry, never an answer to input.
/// On in debug and sanitizer builds, nothing otherwise.
#if defined(FERRY_CHECKED)
#define FERRY_EXPECTS(condition, what) \
  ((condition) ? void() : ::ferry::broken_precondition(#condition, what, __FILE__, __LINE__))
#else
#define FERRY_EXPECTS(condition, what) void()
#endif

/// `FERRY_TRY(auto x, f())`: x is the value of the result f(), or the caller returns f()'s error.
#define FERRY_TRY(declaration, ...) \
  FERRY_TRY_NAMED(FERRY_JOIN(ferry_result_, __LINE__), declaration, (__VA_ARGS__))
#define FERRY_TRY_NAMED(name, declaration, expression) \
  auto name = expression;                              \
  if (!name) return ::std::move(name).error();         \
  declaration = *::std::move(name)
/// `FERRY_CHECK(f())`: the caller returns f()'s error, if there is one.
#define FERRY_CHECK(...)                                    \
  do {                                                      \
    if (auto ferry_result_ = (__VA_ARGS__); !ferry_result_) \
      return ::std::move(ferry_result_).error();            \
  } while (false)
#define FERRY_JOIN(a, b) FERRY_JOIN_(a, b)
#define FERRY_JOIN_(a, b) a##b

namespace ferry {

/// Prints the broken precondition and ends the process (host only).
[[noreturn]] void broken_precondition(char const* condition, char const* what, char const* file,
                                      int line);

}  // namespace ferry
