# Language, warnings and the flags that keep arithmetic the same on every host.
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, Debug, RelWithDebInfo, MinSizeRel" FORCE)
endif()

option(EPLB_COVERAGE "Instrument for gcov" OFF)
set(EPLB_SANITIZE "" CACHE STRING "Sanitizers, as for -fsanitize=: address,undefined or thread")

add_compile_definitions(_POSIX_C_SOURCE=200809L)
# A fused multiply-add rounds once where two operations round twice: plans would differ between hosts.
add_compile_options(-ffp-contract=off)
add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes
                    -Wvla -Wundef -Wpointer-arith -Wwrite-strings)
# No path of the building machine in binaries, and the same bytes from every checkout. (gcov looks for its sources.)
if(NOT EPLB_COVERAGE)
  add_compile_options(-ffile-prefix-map=${CMAKE_SOURCE_DIR}/=)
endif()

if(EPLB_SANITIZE)
  add_compile_options(-fsanitize=${EPLB_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${EPLB_SANITIZE})
endif()

if(EPLB_COVERAGE)
  add_compile_options(--coverage)
  add_link_options(--coverage)
endif()

# Checkouts in different folders share one cache: paths are taken relative to the source tree.
find_program(EPLB_CCACHE ccache)
if(EPLB_CCACHE AND NOT CMAKE_C_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
                                ${EPLB_CCACHE})
endif()
