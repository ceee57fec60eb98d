// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "group/sha256.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

namespace ferry::test {
namespace {

std::span<std::byte const> bytes_of(std::string const& text) {
  return std::as_bytes(std::span(text));
}
std::string hex(digest const& d) {
  std::string text;
  for (std::byte const b : d) text += fmt::format("{:02x}", static_cast<unsigned>(b));
  return text;
}

// The examples of FIPS 180-2, appendix B.
TEST(sha256, has_the_published_digests) {
  EXPECT_EQ(hex(sha256().finish()),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex(sha256().add(bytes_of("abc")).finish()),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex(sha256()
                    .add(bytes_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"))
                    .finish()),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hex(sha256().add(bytes_of(std::string(1'000'000, 'a'))).finish()),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(sha256, does_not_care_how_the_bytes_come) {
  std::string const text(300, 'x');
  for (std::size_t cut = 0; cut <= text.size(); cut += 7)
    EXPECT_EQ(sha256().add(bytes_of(text)).finish(),
              sha256().add(bytes_of(text).first(cut)).add(bytes_of(text).subspan(cut)).finish());
}

// RFC 4231, cases 1, 2 and 6.
TEST(hmac_sha256, has_the_published_codes) {
  EXPECT_EQ(hex(hmac_sha256(bytes_of(std::string(20, '\x0b')), bytes_of("Hi There"))),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hex(hmac_sha256(bytes_of("Jefe"), bytes_of("what do ya want for nothing?"))),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hex(hmac_sha256(bytes_of(std::string(131, '\xaa')),
                            bytes_of("Test Using Larger Than Block-Size Key - Hash Key First"))),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(hmac_sha256, tells_digests_apart_by_any_bit) {
  digest const one = sha256().finish();
  EXPECT_TRUE(equal(one, one));
  for (std::size_t i = 0; i < one.size(); ++i) {
    digest other = one;
    other[i] ^= std::byte{1};
    EXPECT_FALSE(equal(one, other));
  }
}

}  // namespace
}  // namespace ferry::test
