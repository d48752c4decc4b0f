# What an installed eplb consists of: libraries, headers, pkg-config file, CMake package, command, man pages, completion.
include(CMakePackageConfigHelpers)

install(TARGETS eplb_shared eplb_static EXPORT eplbTargets)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/eplb TYPE INCLUDE FILES_MATCHING PATTERN "*.h")

set(EPLB_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/eplb)
install(EXPORT eplbTargets NAMESPACE eplb:: DESTINATION ${EPLB_CMAKE_DIR})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/eplbConfig.cmake.in eplbConfig.cmake
  INSTALL_DESTINATION ${EPLB_CMAKE_DIR})
write_basic_package_version_file(eplbConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/eplbConfig.cmake ${PROJECT_BINARY_DIR}/eplbConfigVersion.cmake
  DESTINATION ${EPLB_CMAKE_DIR})

# The prefix is found from the file's own place, so that an installed tree can be moved.
file(RELATIVE_PATH EPLB_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" EPLB_PC_PREFIX "${EPLB_PC_PREFIX}")
configure_file(${PROJECT_SOURCE_DIR}/cmake/eplb.pc.in eplb.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/eplb.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

if(TARGET eplb_command)
  install(TARGETS eplb_command)
  if(EXISTS ${PROJECT_SOURCE_DIR}/tools/manual/man.c)
    include(Manual)
  endif()
endif()
