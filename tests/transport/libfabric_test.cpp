// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/transport/libfabric.hpp>

#include "transport/loopback_fabric.hpp"

#include <gtest/gtest.h>

namespace ferry::test {
namespace {

/// Whether the build holds libfabric at all.
bool built() {
  auto const why = why_no_fabric();
  return !why || why->find("this build") == std::string::npos;
}

void expect_error(libfabric_options const& o, error_code code, std::string const& named) {
  auto const r = make_libfabric_transport(0, 2, o);
  ASSERT_FALSE(r) << named;
  EXPECT_EQ(r.error().code, code) << r.error().message;
  EXPECT_NE(r.error().message.find(named), std::string::npos) << r.error().message;
}

TEST(libfabric, says_so_where_the_library_is_not_there_or_another) {
  if (!built()) GTEST_SKIP() << "this build has no libfabric";
  libfabric_options o = loopback_fabric();
  o.library = "libno-such-fabric.so.9";
  expect_error(o, error_code::unsupported, "libno-such-fabric.so.9");
  o.library = "libc.so.6";
  expect_error(o, error_code::unsupported, "fi_getinfo");
}

TEST(libfabric, refuses_options_outside_their_limits_with_the_value) {
  if (!built()) GTEST_SKIP() << "this build has no libfabric";
  libfabric_options o = loopback_fabric();
  o.queue_entries = 3;
  expect_error(o, error_code::invalid_argument, "queue_entries is 3");
  o.queue_entries = 32769;
  expect_error(o, error_code::invalid_argument, "queue_entries is 32769");
  o = loopback_fabric();
  o.put_bytes = 63;
  expect_error(o, error_code::invalid_argument, "put_bytes is 63");
  o.put_bytes = std::size_t{1} << 24;
  expect_error(o, error_code::invalid_argument, "put_bytes is 16777216");
  o = loopback_fabric();
  o.connect_timeout = std::chrono::milliseconds{0};
  expect_error(o, error_code::invalid_argument, "connect_timeout is 0");
  o = loopback_fabric();
  o.provider.clear();
  expect_error(o, error_code::invalid_argument, "provider is empty");
}

TEST(libfabric, names_a_provider_domain_or_address_that_is_not_there) {
  if (auto const why = why_no_fabric()) GTEST_SKIP() << *why;
  libfabric_options o = loopback_fabric();
  o.provider = "no-such-provider";
  expect_error(o, error_code::unsupported, "no-such-provider");
  o = loopback_fabric();
  o.domain = "no-such-domain";
  expect_error(o, error_code::invalid_argument, "no-such-domain");
  o = loopback_fabric();
  o.address = "192.0.2.1";  // of documentation: no machine has it
  expect_error(o, error_code::invalid_argument, "192.0.2.1");
}

TEST(libfabric, takes_the_interface_by_name_or_address) {
  if (auto const why = why_no_fabric()) GTEST_SKIP() << *why;
  auto const domains = libfabric_domains().value();
  ASSERT_NE(std::find(domains.begin(), domains.end(), "lo"), domains.end());
  libfabric_options o;
  o.domain = "lo";
  EXPECT_TRUE(make_libfabric_transport(0, 1, o));
  EXPECT_TRUE(make_libfabric_transport(0, 1, loopback_fabric()));
}

TEST(libfabric, refuses_a_rank_that_is_none) {
  auto const r = make_libfabric_transport(2, 2, loopback_fabric());
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, built() ? error_code::invalid_argument : error_code::unsupported);
}

}  // namespace
}  // namespace ferry::test
