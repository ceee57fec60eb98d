// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/transport/rails.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace ferry::test {
namespace {

using names = std::vector<std::vector<std::string>>;

std::string file_of(std::string const& name) {
  return FERRY_MACHINES "/" + name + ".xml";
}

names names_of(machine_map const& m, std::vector<std::vector<rail>> const& all) {
  names made;
  for (auto const& rails : all) {
    made.emplace_back();
    for (rail const& r : rails)
      made.back().push_back(m.nics[static_cast<std::size_t>(r.nic)].name());
  }
  return made;
}

names rails_of(machine_map const& m, int ranks, int rails, rail_kind kind = rail_kind::rdma) {
  return names_of(m, choose_rails(m, places_of_ranks(m, ranks), kind, rails));
}

/// One of the described machines. The cases that need it are skipped in a build without hwloc.
class described_machine : public ::testing::Test {
 protected:
  void read(std::string const& name) {
    auto m = read_machine(file_of(name));
    if (!m && m.error().code == error_code::unsupported) GTEST_SKIP() << m.error().message;
    ASSERT_TRUE(m) << m.error().message;
    machine = *std::move(m);
  }
  machine_map machine;
};

TEST_F(described_machine, has_eight_gpus_with_a_nic_behind_each_ones_switch) {
  read("eight_gpus_eight_nics");
  if (IsSkipped()) return;
  EXPECT_EQ(machine.num_packages, 2);
  ASSERT_EQ(machine.devices.size(), 8u);
  ASSERT_EQ(machine.nics.size(), 8u);
  ASSERT_EQ(machine.numa_nodes.size(), 2u);
  for (std::size_t d = 0; d < 8; ++d) {
    EXPECT_EQ(machine.devices[d].name, "rsmi" + std::to_string(d));
    EXPECT_EQ(machine.nics[d].rdma, "mlx5_" + std::to_string(d));
    EXPECT_EQ(machine.nics[d].interface, "eth" + std::to_string(d));
    EXPECT_EQ(machine.devices[d].numa_node, d < 4 ? 0 : 1);
    EXPECT_EQ(machine.nics[d].numa_node, d < 4 ? 0 : 1);
    for (std::size_t n = 0; n < 8; ++n)
      EXPECT_EQ(machine.devices[d].to_nic[n].near, d == n           ? nearness::same_switch
                                                   : d / 4 == n / 4 ? nearness::same_numa
                                                                    : nearness::other_package)
          << d << " to " << n;
  }
  EXPECT_EQ(machine.devices[0].bus, "0000:03:00.0");
  EXPECT_EQ(machine.nics[0].bus, "0000:04:00.0");
}

TEST_F(described_machine, gives_each_of_eight_ranks_its_own_nic_and_a_neighbours) {
  read("eight_gpus_eight_nics");
  if (IsSkipped()) return;
  names const wanted = {{"mlx5_0", "mlx5_1"}, {"mlx5_1", "mlx5_2"}, {"mlx5_2", "mlx5_3"},
                        {"mlx5_3", "mlx5_0"}, {"mlx5_4", "mlx5_5"}, {"mlx5_5", "mlx5_6"},
                        {"mlx5_6", "mlx5_7"}, {"mlx5_7", "mlx5_4"}};
  EXPECT_EQ(rails_of(machine, 8, 2), wanted);
  names const one = rails_of(machine, 8, 1);
  for (std::size_t r = 0; r < 8; ++r) EXPECT_EQ(one[r], std::vector{"mlx5_" + std::to_string(r)});
  // Never one of the other package, however many are asked for.
  for (auto const& rails : rails_of(machine, 8, 16)) EXPECT_EQ(rails.size(), 4u);
}

TEST_F(described_machine, uses_every_nic_equally) {
  read("eight_gpus_eight_nics");
  if (IsSkipped()) return;
  for (int rails = 1; rails <= 4; ++rails) {
    std::map<std::string, int> uses;
    for (auto const& of_rank : rails_of(machine, 8, rails))
      for (std::string const& n : of_rank) ++uses[n];
    EXPECT_EQ(uses.size(), 8u);
    for (auto const& [name, count] : uses) EXPECT_EQ(count, rails) << name;
  }
}

TEST_F(described_machine, shares_the_nic_of_a_socket_among_its_ranks) {
  read("two_sockets_two_nics");
  if (IsSkipped()) return;
  ASSERT_EQ(machine.devices.size(), 4u) << "a board's screen is no device";
  names const near = {{"mlx5_0"}, {"mlx5_0"}, {"mlx5_1"}, {"mlx5_1"}};
  EXPECT_EQ(rails_of(machine, 4, 1), near);
  EXPECT_EQ(rails_of(machine, 4, 2), near) << "the other socket's NIC is no second rail";
  names const interfaces = {{"mlx5_0"}, {"eno1"}, {"mlx5_1"}, {"mlx5_1"}};
  EXPECT_EQ(rails_of(machine, 4, 1, rail_kind::interface), interfaces);
}

TEST_F(described_machine, takes_a_far_nic_where_there_is_no_near_one) {
  read("two_sockets_two_nics");
  if (IsSkipped()) return;
  for (machine_nic& n : machine.nics)
    if (n.numa_node == 1) n.rdma.clear();
  names const wanted = {{"mlx5_0"}, {"mlx5_0"}, {"mlx5_0"}, {"mlx5_0"}};
  EXPECT_EQ(rails_of(machine, 4, 2), wanted);
  for (machine_nic& n : machine.nics) n.rdma.clear();
  EXPECT_EQ(rails_of(machine, 4, 2), names(4)) << "none at all is no rail";
}

TEST_F(described_machine, places_cpu_ranks_at_numa_nodes_in_equal_shares) {
  read("two_sockets_two_nics");
  if (IsSkipped()) return;
  machine.devices.clear();
  names const four = {{"mlx5_0"}, {"mlx5_0"}, {"mlx5_1"}, {"mlx5_1"}};
  EXPECT_EQ(rails_of(machine, 4, 1), four);
  names const three = {{"mlx5_0"}, {"mlx5_0"}, {"mlx5_1"}};
  EXPECT_EQ(rails_of(machine, 3, 1), three);
  EXPECT_EQ(rails_of(machine, 1, 1), names{{"mlx5_0"}});
}

TEST_F(described_machine, lets_more_ranks_than_devices_take_turns) {
  read("two_sockets_two_nics");
  if (IsSkipped()) return;
  auto const places = places_of_ranks(machine, 6);
  ASSERT_EQ(places.size(), 6u);
  EXPECT_EQ(places[4], &machine.devices[0]);
  EXPECT_EQ(places[5], &machine.devices[1]);
}

// Of two NICs behind one switch, the one with fewer bridges on the way; then the one less used.
TEST(rails, take_the_nearest_of_several_and_then_the_least_used) {
  machine_map m;
  for (char const* name : {"a", "b", "c"}) m.nics.push_back({.rdma = name});
  using enum nearness;
  m.devices.push_back(
      {.name = "0", .to_nic = {{same_switch, 4}, {same_switch, 2}, {same_numa, 0}}});
  m.devices.push_back({.name = "1", .to_nic = {{same_numa, 0}, {same_numa, 0}, {same_numa, 0}}});
  m.devices.push_back({.name = "2", .to_nic = {{same_numa, 0}, {same_numa, 0}, {same_numa, 0}}});
  names const wanted = {{"b", "a"}, {"a", "b"}, {"c", "a"}};
  EXPECT_EQ(rails_of(m, 3, 2), wanted);
}

TEST(rails, say_how_near_they_are) {
  EXPECT_STREQ(to_string(nearness::same_switch), "same switch");
  EXPECT_STREQ(to_string(nearness::other_package), "other package");
}

TEST(rails, read_this_machine_or_say_why_not) {
  auto const m = read_machine();
  if (!m) {
    EXPECT_EQ(m.error().code, error_code::unsupported) << m.error().message;
    return;
  }
  EXPECT_FALSE(m->numa_nodes.empty());
  for (machine_place const& p : m->numa_nodes) EXPECT_EQ(p.to_nic.size(), m->nics.size());
}

TEST(rails, name_a_library_or_file_that_is_not_there_or_another) {
  if (auto const m = read_machine();
      !m && m.error().message.find("this build") != std::string::npos)
    GTEST_SKIP() << m.error().message;
  auto const no_library = read_machine({}, "libno-such-hwloc.so.9");
  ASSERT_FALSE(no_library);
  EXPECT_EQ(no_library.error().code, error_code::unsupported);
  EXPECT_NE(no_library.error().message.find("libno-such-hwloc"), std::string::npos);
  for (std::string const& file : {std::string("no-such-machine.xml"), std::string("/dev/null")}) {
    auto const m = read_machine(file);
    ASSERT_FALSE(m);
    EXPECT_EQ(m.error().code, error_code::io) << m.error().message;
    EXPECT_NE(m.error().message.find(file), std::string::npos) << m.error().message;
  }
}

// A description that is cut off anywhere is refused, or read as far as it describes a machine.
TEST_F(described_machine, may_be_cut_off_anywhere) {
  read("two_sockets_two_nics");
  if (IsSkipped()) return;
  std::ifstream in(file_of("two_sockets_two_nics"));
  std::string const whole(std::istreambuf_iterator<char>(in), {});
  std::string const path = ::testing::TempDir() + "ferry_cut_machine.xml";
  for (std::size_t bytes = 0; bytes < whole.size(); bytes += 97) {
    std::ofstream(path) << whole.substr(0, bytes);
    auto const m = read_machine(path);
    EXPECT_TRUE(m || m.error().code == error_code::io) << bytes;
  }
  std::remove(path.c_str());
}

}  // namespace
}  // namespace ferry::test
