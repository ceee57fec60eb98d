// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Ranks that are real processes, forked on this machine, without MPI.
///
///   auto const report = ferry::test::run_ranks(4, [](int rank, std::string const& address) {
///     auto const group = ferry::join(ferry::tcp(address, rank, 4)).value();
///     EXPECT_TRUE(group.barrier());
///   });
///   EXPECT_TRUE(report.ok()) << report.describe();
#pragma once

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace ferry::test {

/// A port of the loopback interface that nobody else gets while this lives. Rank 0 may listen at
/// it: both sides allow the reuse of the address.
class reserved_port {
 public:
  explicit reserved_port(char const* host = "127.0.0.1") : host_(host) {
    socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int const yes = 1;
    ::setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof at;
    if (::bind(socket_, reinterpret_cast<sockaddr*>(&at), length) != 0 ||
        ::getsockname(socket_, reinterpret_cast<sockaddr*>(&at), &length) != 0)
      throw std::system_error(errno, std::generic_category(), "cannot reserve a port");
    port_ = ntohs(at.sin_port);
  }
  ~reserved_port() { ::close(socket_); }
  reserved_port(reserved_port const&) = delete;

  int port() const { return port_; }
  std::string address() const { return host_ + ":" + std::to_string(port_); }

 private:
  std::string host_;
  int socket_ = -1;
  int port_ = 0;
};

/// How one rank's process ended.
struct rank_end {
  int exit_status = -1;  ///< of a process that ended by itself
  int signal = 0;        ///< that killed it
  bool late = false;     ///< it did not end before the deadline and was killed for that
  std::string output;    ///< what it printed
  bool ok() const { return exit_status == 0 && !late; }
};

struct run_report {
  std::vector<rank_end> ranks;

  bool ok() const {
    for (auto const& r : ranks)
      if (!r.ok()) return false;
    return true;
  }
  /// The ranks that failed, and what each printed.
  std::string describe() const {
    std::string text;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      auto const& r = ranks[rank];
      if (r.ok()) continue;
      text += "rank " + std::to_string(rank) +
              (r.late     ? " did not end before the deadline"
               : r.signal ? " was killed by signal " + std::to_string(r.signal)
                          : " ended with status " + std::to_string(r.exit_status)) +
              ":\n" + r.output + "\n";
    }
    return text;
  }
};

/// Called in the rank's process. A failed expectation or an exception makes its exit status 1.
using rank_body = std::function<void(int rank, std::string const& address)>;

/// Processes of ranks that can be watched and killed one by one.
class rank_processes {
 public:
  rank_processes(int count, rank_body const& body) {
    for (int rank = 0; rank < count; ++rank) start(rank, body);
  }
  ~rank_processes() { wait(std::chrono::milliseconds{0}); }
  rank_processes(rank_processes const&) = delete;

  pid_t pid(int rank) const { return children_[static_cast<std::size_t>(rank)].pid; }
  void send_signal(int rank, int signal) const {
    if (auto const& child = children_[static_cast<std::size_t>(rank)]; !child.ended)
      ::kill(child.pid, signal);
  }
  std::string address() const { return port_.address(); }

  /// Waits for all, kills those that are late, and tells how each ended.
  run_report wait(std::chrono::milliseconds timeout) {
    auto const end = std::chrono::steady_clock::now() + timeout;
    for (auto& child : children_) {
      while (!child.ended && !reap(child, WNOHANG)) {
        if (std::chrono::steady_clock::now() >= end) {
          child.how.late = true;
          ::kill(child.pid, SIGKILL);
          reap(child, 0);
        } else {
          std::this_thread::sleep_for(std::chrono::milliseconds{2});
        }
      }
    }
    run_report report;
    for (auto& child : children_) report.ranks.push_back(child.how);
    return report;
  }

 private:
  struct process {
    pid_t pid = -1;
    int output = -1;
    bool ended = false;
    rank_end how;
  };

  void start(int rank, rank_body const& body) {
    process made;
    made.output = ::memfd_create("rank-output", MFD_CLOEXEC);
    std::fflush(nullptr);
    made.pid = ::fork();
    if (made.pid < 0) throw std::system_error(errno, std::generic_category(), "cannot fork");
    if (made.pid == 0) live(rank, body, made.output);
    children_.push_back(made);
  }

  [[noreturn]] void live(int rank, rank_body const& body, int output) const {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(output, STDOUT_FILENO);
    ::dup2(output, STDERR_FILENO);
    // The test may have failed before the fork: only what fails in here counts.
    int const failed_before = failed_parts();
    int status = 0;
    try {
      body(rank, port_.address());
    } catch (std::exception const& e) {
      std::fprintf(stderr, "exception: %s\n", e.what());
      status = 1;
    }
    if (failed_parts() > failed_before) status = 1;
    std::fflush(nullptr);
    ::_exit(status);
  }

  static int failed_parts() {
    auto const* test = ::testing::UnitTest::GetInstance()->current_test_info();
    int failed = 0;
    for (int i = 0; test && i < test->result()->total_part_count(); ++i)
      failed += test->result()->GetTestPartResult(i).failed();
    return failed;
  }

  static bool reap(process& c, int how) {
    int status = 0;
    if (::waitpid(c.pid, &status, how) != c.pid) return false;
    c.ended = true;
    if (WIFEXITED(status)) c.how.exit_status = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) c.how.signal = WTERMSIG(status);
    c.how.output = contents(c.output);
    ::close(c.output);
    return true;
  }
  static std::string contents(int file) {
    std::string text;
    char piece[4096];
    for (off_t at = 0;;) {
      auto const got = ::pread(file, piece, sizeof piece, at);
      if (got <= 0) return text;
      text.append(piece, static_cast<std::size_t>(got));
      at += got;
    }
  }

  reserved_port port_;
  std::vector<process> children_;
};

/// Forks `count` ranks, calls `body(rank, address)` in each, and waits for all.
inline run_report run_ranks(int count, rank_body const& body,
                            std::chrono::milliseconds timeout = std::chrono::seconds{30}) {
  rank_processes ranks(count, body);
  return ranks.wait(timeout);
}

}  // namespace ferry::test
