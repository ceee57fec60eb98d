// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "group/shared_secret.hpp"

#include <cstring>
#include <string_view>

namespace ferry {
namespace {

// What is signed begins with what it is for, so that no answer serves for another question.
digest sign(std::string const& secret, std::string_view purpose, bytes const& what) {
  packer signed_text;
  signed_text.add_text(purpose).add_bytes(what);
  return hmac_sha256(std::as_bytes(std::span(secret)), signed_text.packed());
}

}  // namespace

digest proof_of_rank(std::string const& secret, hello const& said, challenge const& asked) {
  return sign(secret, "ferry rank", packer{}.add(said).add(asked).packed());
}

digest proof_of_host(std::string const& secret, hello const& said, challenge const& asked) {
  return sign(secret, "ferry rank 0", packer{}.add(said).add(asked).packed());
}

secret sign_greeting(std::string const& shared, greeting const& g) {
  digest const whole = sign(shared, "ferry greeting", packer{}.add(g).packed());
  secret made{};
  std::memcpy(&made, whole.data(), sizeof made);
  return made;
}

}  // namespace ferry
