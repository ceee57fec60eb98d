// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/transport/verbs.hpp>

#include <gtest/gtest.h>

namespace ferry::test {
namespace {

/// Whether the build holds verbs at all.
bool built() {
  auto const r = verbs_devices();
  return r || r.error().message.find("this build") == std::string::npos;
}

TEST(verbs, says_so_where_the_library_is_not_there) {
  if (!built()) GTEST_SKIP() << "this build has no verbs";
  auto const r = make_verbs_transport(0, 2, {.library = "libno-such-verbs.so.9"});
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, error_code::unsupported);
  EXPECT_NE(r.error().message.find("libno-such-verbs.so.9"), std::string::npos)
      << r.error().message;
}

TEST(verbs, says_so_where_the_library_is_another) {
  if (!built()) GTEST_SKIP() << "this build has no verbs";
  auto const r = make_verbs_transport(0, 2, {.library = "libc.so.6"});
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, error_code::unsupported);
  EXPECT_NE(r.error().message.find("ibv_get_device_list"), std::string::npos) << r.error().message;
}

TEST(verbs, says_so_where_there_is_no_device) {
  auto const devices = verbs_devices();
  if (devices && !devices->empty())
    GTEST_SKIP() << "this machine has the RDMA device " << devices->front();
  auto const r = make_verbs_transport(0, 2, {});
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, error_code::unsupported) << r.error().message;
}

TEST(verbs, refuses_options_outside_their_limits_with_the_value) {
  if (!built()) GTEST_SKIP() << "this build has no verbs";
  struct wrong {
    verbs_options options;
    char const* named;
  };
  for (wrong const& w :
       {wrong{{.port = 0}, "port is 0"}, wrong{{.gid_index = -2}, "gid_index is -2"},
        wrong{{.service_level = 16}, "service_level is 16"},
        wrong{{.traffic_class = 256}, "traffic_class is 256"},
        wrong{{.timeout = 0}, "timeout is 0"}, wrong{{.retries = 7}, "retries is 7"},
        wrong{{.queue_entries = 3}, "queue_entries is 3"},
        wrong{{.put_bytes = 1u << 24}, "put_bytes is 16777216"}}) {
    auto const r = make_verbs_transport(0, 2, w.options);
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().code, error_code::invalid_argument);
    EXPECT_NE(r.error().message.find(w.named), std::string::npos) << r.error().message;
  }
  EXPECT_FALSE(make_verbs_transport(2, 2, {}));
}

TEST(verbs, refuses_a_device_that_is_not_there_by_its_name) {
  auto const devices = verbs_devices();
  if (!devices || devices->empty()) GTEST_SKIP() << "this machine has no RDMA device";
  auto const r = make_verbs_transport(0, 2, {.device = "no_such_nic"});
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, error_code::invalid_argument);
  EXPECT_NE(r.error().message.find("no_such_nic"), std::string::npos) << r.error().message;
}

}  // namespace
}  // namespace ferry::test
