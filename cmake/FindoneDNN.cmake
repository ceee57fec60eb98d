# SPDX-License-Identifier: MIT
# Finds oneDNN by its header and library, as the target oneDNN::dnnl. Its own package file is of no
# use where it was built with OpenCL, because it then asks for OpenCL's headers as well.
find_path(oneDNN_INCLUDE_DIR oneapi/dnnl/dnnl.hpp)
find_library(oneDNN_LIBRARY dnnl)
if(oneDNN_INCLUDE_DIR AND EXISTS ${oneDNN_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h)
  file(STRINGS ${oneDNN_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h oneDNN_lines
       REGEX "define DNNL_VERSION_(MAJOR|MINOR|PATCH) ")
  string(REGEX REPLACE "[^0-9;]" "" oneDNN_lines "${oneDNN_lines}")
  list(JOIN oneDNN_lines "." oneDNN_VERSION)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(oneDNN REQUIRED_VARS oneDNN_LIBRARY oneDNN_INCLUDE_DIR
                                  VERSION_VAR oneDNN_VERSION)
mark_as_advanced(oneDNN_INCLUDE_DIR oneDNN_LIBRARY)

if(oneDNN_FOUND AND NOT TARGET oneDNN::dnnl)
  add_library(oneDNN::dnnl UNKNOWN IMPORTED)
  set_target_properties(oneDNN::dnnl PROPERTIES IMPORTED_LOCATION ${oneDNN_LIBRARY}
                        INTERFACE_INCLUDE_DIRECTORIES ${oneDNN_INCLUDE_DIR})
endif()
