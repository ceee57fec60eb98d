// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Which of a provider's domains the options mean.
#pragma once

#include <ferry/base/result.hpp>
#include <ferry/transport/libfabric.hpp>

#include "transport/libfabric/fabric_library.hpp"

#include <string>
#include <vector>

namespace ferry {

/// To be freed by the library's freeinfo.
/// Errors   unsupported the provider is not there, or can do too little; invalid_argument it has no
///          such domain or address, with those that it has
result<fi_info*> choose_domain(fabric_library const& library, libfabric_options const& options);

/// The provider's domains that fit, in its order.
/// Errors   unsupported as choose_domain
result<std::vector<std::string>> domain_names(fabric_library const& library,
                                              libfabric_options const& options);

}  // namespace ferry
