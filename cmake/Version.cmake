# The version is written once, in the public header; the build reads it from there.
set(version_header ${CMAKE_CURRENT_LIST_DIR}/../include/eplb/status.h)
foreach(part MAJOR MINOR PATCH)
  file(STRINGS ${version_header} line REGEX "^#define EPLB_VERSION_${part} [0-9]+$")
  string(REGEX REPLACE "^.* " "" EPLB_VERSION_${part} "${line}")
endforeach()
set(EPLB_VERSION ${EPLB_VERSION_MAJOR}.${EPLB_VERSION_MINOR}.${EPLB_VERSION_PATCH})
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${version_header})
