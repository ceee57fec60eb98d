# SPDX-License-Identifier: MIT
# What `cmake --install` puts where, and the CMake package that find_package(ferry CONFIG) reads.
# Each optional library is an export set of its own, so that a user of the core needs no MPI.
include(CMakePackageConfigHelpers)

set(FERRY_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/ferry)
set(FERRY_INSTALLED_COMPONENTS "")

install(TARGETS ferry_headers ferry EXPORT ferryTargets FILE_SET HEADERS)
install(EXPORT ferryTargets NAMESPACE ferry:: DESTINATION ${FERRY_CMAKE_DIR})

foreach(component IN ITEMS mpi files deepseek)
  if(TARGET ferry_${component})
    list(APPEND FERRY_INSTALLED_COMPONENTS ${component})
    get_target_property(header_sets ferry_${component} HEADER_SETS)
    if(header_sets)
      install(TARGETS ferry_${component} EXPORT ferry_${component}Targets FILE_SET HEADERS)
    else()
      install(TARGETS ferry_${component} EXPORT ferry_${component}Targets)
    endif()
    install(EXPORT ferry_${component}Targets NAMESPACE ferry:: DESTINATION ${FERRY_CMAKE_DIR})
  endif()
endforeach()
if(TARGET ferry_deepseek)
  install(FILES ${PROJECT_SOURCE_DIR}/cmake/FindoneDNN.cmake DESTINATION ${FERRY_CMAKE_DIR})
endif()

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/ferryConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/ferryConfig.cmake
                              INSTALL_DESTINATION ${FERRY_CMAKE_DIR})
# Below 1.0 a minor version may change anything.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/ferryConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/ferryConfig.cmake ${PROJECT_BINARY_DIR}/ferryConfigVersion.cmake
        DESTINATION ${FERRY_CMAKE_DIR})
