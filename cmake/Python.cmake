# The Python extension: declarations taken from the public headers (python/build_ffi.py), compiled against CPython's
# stable ABI, with the static library inside.
find_package(Python 3.9 REQUIRED COMPONENTS Interpreter Development.Module)

file(GLOB EPLB_HEADERS CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/eplb/*.h)
set(extension_source ${PROJECT_BINARY_DIR}/_eplb.c)
add_custom_command(OUTPUT ${extension_source} VERBATIM
  COMMAND ${Python_EXECUTABLE} ${PROJECT_SOURCE_DIR}/python/build_ffi.py --include ${PROJECT_SOURCE_DIR}/include
          --output ${extension_source}
  DEPENDS ${PROJECT_SOURCE_DIR}/python/build_ffi.py ${EPLB_HEADERS})

add_library(eplb_extension MODULE ${extension_source})
set_target_properties(eplb_extension PROPERTIES OUTPUT_NAME _eplb PREFIX "" SUFFIX .abi3.so C_VISIBILITY_PRESET hidden)
target_compile_definitions(eplb_extension PRIVATE Py_LIMITED_API=0x03090000)
target_compile_options(eplb_extension PRIVATE -w) # generated code
target_link_libraries(eplb_extension PRIVATE eplb_static Python::Module)
install(TARGETS eplb_extension DESTINATION eplb COMPONENT python)

if(TARGET eplb_command AND DEFINED SKBUILD_SCRIPTS_DIR)
  install(TARGETS eplb_command DESTINATION ${SKBUILD_SCRIPTS_DIR} COMPONENT python)
endif()
