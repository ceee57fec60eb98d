// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/group.hpp>

#include "base/fail.hpp"
#include "group/rendezvous.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>
#include <optional>

namespace ferry {
namespace {

constexpr std::size_t longest_secret = 4096;

result<std::unique_ptr<bootstrap>> meet_at(result<endpoint> const& where, int rank, int size,
                                           std::string const& secret,
                                           group_options const& options) {
  if (size < 1 || size > max_ranks)
    return fail(error_code::invalid_argument, "a group of {} ranks; from 1 to {}", size, max_ranks);
  if (rank < 0 || rank >= size)
    return fail(error_code::invalid_argument, "rank {} in a group of {} ranks", rank, size);
  if (!where) return where.error();
  if (secret.size() > longest_secret)
    return fail(error_code::invalid_argument, "a shared secret of {} bytes; at most {}",
                secret.size(), longest_secret);
  rendezvous place;
  place.where = *where;
  place.rank = rank;
  place.size = size;
  place.shared_secret = secret;
  FERRY_TRY(auto to_peers, meet(std::move(place), options.timeout));
  return bootstrap_over(rank, std::move(to_peers));
}

constexpr char const* secret_variable = "FERRY_SECRET";
constexpr char const* variables[] = {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"};

std::map<std::string, std::string> environment() {
  std::map<std::string, std::string> found;
  for (auto const* name : variables)
    if (auto const* value = std::getenv(name)) found[name] = value;
  if (auto const* value = std::getenv(secret_variable)) found[secret_variable] = value;
  return found;
}

result<int> number_in(std::map<std::string, std::string> const& from, std::string const& name) {
  auto const& text = from.at(name);
  int number = 0;
  auto const [stop, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc{} || stop != text.data() + text.size())
    return fail(error_code::invalid_argument, "{}=\"{}\" in the environment is no number", name,
                text);
  return number;
}

result<endpoint> endpoint_in(std::map<std::string, std::string> const& from) {
  auto const& host = from.at("MASTER_ADDR");
  if (host.empty())
    return fail(error_code::invalid_argument, "MASTER_ADDR in the environment is empty");
  auto const port = parse_port(from.at("MASTER_PORT"));
  if (!port)
    return fail(error_code::invalid_argument, "MASTER_PORT in the environment: {}",
                port.error().message);
  return endpoint{host, *port};
}

}  // namespace

bootstrap_factory tcp(std::string address, int rank, int size, std::string secret) {
  return [=](group_options const& options) {
    return meet_at(parse_endpoint(address), rank, size, secret, options);
  };
}

bool tcp_environment_is_set() {
  auto const found = environment();
  return std::ranges::all_of(variables, [&](char const* name) { return found.contains(name); });
}

bootstrap_factory tcp_from_environment() {
  return
      [found = environment()](group_options const& options) -> result<std::unique_ptr<bootstrap>> {
        for (auto const* name : variables)
          if (!found.contains(name))
            return fail(error_code::invalid_argument, "{} is not set in the environment", name);
        FERRY_TRY(auto const rank, number_in(found, "RANK"));
        FERRY_TRY(auto const size, number_in(found, "WORLD_SIZE"));
        auto const secret = found.find(secret_variable);
        if (secret != found.end() && secret->second.empty())
          return fail(error_code::invalid_argument, "{} is set to nothing in the environment",
                      secret_variable);
        return meet_at(endpoint_in(found), rank, size,
                       secret == found.end() ? std::string() : secret->second, options);
      };
}

}  // namespace ferry
