// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "transport/libfabric/fabric_choice.hpp"

#include "base/fail.hpp"

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace ferry {
namespace {

/// The version of the interface whose meanings this code knows.
constexpr std::uint32_t known_interface = FI_VERSION(1, 14);

struct free_info {
  fabric_library const* library;
  void operator()(fi_info* info) const { library->freeinfo(info); }
};
using info_list = std::unique_ptr<fi_info, free_info>;

/// What any provider must be able to do. No order of operations is asked for.
info_list needs(fabric_library const& library, libfabric_options const& options) {
  info_list hints(library.dupinfo(nullptr), {&library});
  if (!hints) return hints;
  hints->caps = FI_MSG | FI_RMA;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_RDM;
  hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
  hints->domain_attr->threading = FI_THREAD_SAFE;
  hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
  // The transport's thread makes progress itself.
  hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
  hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
  hints->domain_attr->mr_mode =
      FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
  hints->fabric_attr->prov_name = ::strdup(options.provider.c_str());
  return hints;
}

/// The library's answers; an empty list where it has none.
result<info_list> ask(fabric_library const& library, libfabric_options const& options,
                      std::string const& domain, std::string const& address) {
  info_list const hints = needs(library, options);
  if (!hints) return fail(error_code::out_of_memory, "libfabric gives no memory for a question");
  if (!domain.empty()) hints->domain_attr->name = ::strdup(domain.c_str());
  fi_info* found = nullptr;
  bool const from = !address.empty();
  int const e = library.getinfo(known_interface, from ? address.c_str() : nullptr, nullptr,
                                from ? FI_SOURCE : 0, hints.get(), &found);
  if (e != 0 && e != -FI_ENODATA)
    return fail(error_code::unsupported, "libfabric does not answer for provider {}: {}",
                options.provider, library.error_text(-e));
  return info_list(e == 0 ? found : nullptr, {&library});
}

}  // namespace

result<std::vector<std::string>> domain_names(fabric_library const& library,
                                              libfabric_options const& options) {
  FERRY_TRY(info_list const all, ask(library, options, {}, {}));
  if (!all)
    return fail(error_code::unsupported,
                "libfabric has no provider {} with reliable datagrams, remote writes and a report "
                "of delivery on this machine",
                options.provider);
  std::vector<std::string> names;
  for (fi_info const* i = all.get(); i; i = i->next)
    if (std::find(names.begin(), names.end(), i->domain_attr->name) == names.end())
      names.emplace_back(i->domain_attr->name);
  return names;
}

result<fi_info*> choose_domain(fabric_library const& library, libfabric_options const& options) {
  FERRY_TRY(auto const names, domain_names(library, options));
  if (!options.domain.empty() &&
      std::find(names.begin(), names.end(), options.domain) == names.end())
    return fail(error_code::invalid_argument, "provider {} has no domain {} among {}",
                options.provider, options.domain, fmt::join(names, ", "));
  FERRY_TRY(info_list all, ask(library, options, options.domain, options.address));
  // An address that is no one's makes tcp offer a domain that it has not listed.
  if (!all || std::find(names.begin(), names.end(), all->domain_attr->name) == names.end())
    return fail(error_code::invalid_argument, "no domain of provider {} ({}) has the address {}",
                options.provider,
                options.domain.empty() ? fmt::format("{}", fmt::join(names, ", ")) : options.domain,
                options.address);
  // The first of several; the others go.
  fi_info* const rest = std::exchange(all->next, nullptr);
  if (rest) library.freeinfo(rest);
  return all.release();
}

}  // namespace ferry
