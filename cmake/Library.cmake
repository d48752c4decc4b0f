# The library three times from the same sources: shared and static as shipped (only EPLB_API functions visible), and
# one with everything visible, so that tests reach internal functions.
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

file(GLOB EPLB_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*/*.c)

# What a target of the library, shipped or not, has in common.
function(eplb_library_properties target)
  target_include_directories(${target}
    PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
    PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${target} PUBLIC Threads::Threads PRIVATE m)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
endfunction()

add_library(eplb_objects OBJECT ${EPLB_SOURCES})
eplb_library_properties(eplb_objects)
set_target_properties(eplb_objects PROPERTIES C_VISIBILITY_PRESET hidden)

add_library(eplb_shared SHARED $<TARGET_OBJECTS:eplb_objects>)
eplb_library_properties(eplb_shared)
set(EPLB_MAP ${PROJECT_SOURCE_DIR}/src/eplb.map)
target_link_options(eplb_shared PRIVATE -Wl,--version-script=${EPLB_MAP} -Wl,--as-needed)
if(NOT EPLB_SANITIZE) # clang leaves the sanitizer's own functions to the executable
  target_link_options(eplb_shared PRIVATE -Wl,--no-undefined)
endif()
set_target_properties(eplb_shared PROPERTIES
  OUTPUT_NAME eplb EXPORT_NAME eplb LINKER_LANGUAGE C LINK_DEPENDS ${EPLB_MAP}
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
add_library(eplb::eplb ALIAS eplb_shared)

# One object with every hidden name made local: a program that links the archive may use the same names for its own.
set(EPLB_ARCHIVED $<TARGET_OBJECTS:eplb_objects>)
if(CMAKE_OBJCOPY AND NOT EPLB_SANITIZE AND NOT EPLB_COVERAGE)
  set(one_object ${PROJECT_BINARY_DIR}/eplb_archived.o)
  add_custom_command(OUTPUT ${one_object} VERBATIM COMMAND_EXPAND_LISTS
    COMMAND ${CMAKE_C_COMPILER} -r -nostdlib -o ${one_object} $<TARGET_OBJECTS:eplb_objects>
    COMMAND ${CMAKE_OBJCOPY} --localize-hidden ${one_object}
    DEPENDS eplb_objects $<TARGET_OBJECTS:eplb_objects>)
  set(EPLB_ARCHIVED ${one_object})
endif()
add_library(eplb_static STATIC ${EPLB_ARCHIVED})
eplb_library_properties(eplb_static)
set_target_properties(eplb_static PROPERTIES OUTPUT_NAME eplb LINKER_LANGUAGE C)
add_library(eplb::eplb_static ALIAS eplb_static)

add_library(eplb_all_visible STATIC EXCLUDE_FROM_ALL ${EPLB_SOURCES})
eplb_library_properties(eplb_all_visible)
target_include_directories(eplb_all_visible INTERFACE ${PROJECT_SOURCE_DIR}/src)
