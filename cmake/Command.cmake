# The command: everything of tools/ and bench/ but main.c is one archive, which its tests and the fuzz targets link too.
file(GLOB EPLB_TOOL_SOURCES CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/tools/*.c ${PROJECT_SOURCE_DIR}/tools/*/*.c ${PROJECT_SOURCE_DIR}/bench/*.c)
set(EPLB_MAIN ${PROJECT_SOURCE_DIR}/tools/main.c)
list(REMOVE_ITEM EPLB_TOOL_SOURCES ${EPLB_MAIN})
if(NOT EPLB_COMMAND OR NOT EPLB_TOOL_SOURCES)
  return()
endif()

find_package(PkgConfig REQUIRED)
pkg_check_modules(EPLB_TOOL_LIBRARIES REQUIRED IMPORTED_TARGET jansson zlib libzip yaml-0.1)

add_library(eplb_tool STATIC ${EPLB_TOOL_SOURCES})
# src/ is for the source-less headers of base alone; scripts/check-includes refuses the rest.
target_include_directories(eplb_tool PUBLIC
  ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/tools ${PROJECT_SOURCE_DIR}/bench ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(eplb_tool PUBLIC PkgConfig::EPLB_TOOL_LIBRARIES Threads::Threads m)

if(EXISTS ${EPLB_MAIN})
  add_executable(eplb_command ${EPLB_MAIN})
  target_link_libraries(eplb_command PRIVATE eplb_tool eplb_static)
  target_link_options(eplb_command PRIVATE -Wl,--as-needed)
  set_target_properties(eplb_command PROPERTIES OUTPUT_NAME eplb RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
endif()
