# Command-line cases as files: every folder under golden/ with a `cmd` is one test (see golden/run.py).
if(TARGET eplb_command)
  file(GLOB_RECURSE commands CONFIGURE_DEPENDS golden/cmd)
  foreach(command IN LISTS commands)
    get_filename_component(case ${command} DIRECTORY)
    file(RELATIVE_PATH name ${CMAKE_CURRENT_SOURCE_DIR} ${case})
    string(REPLACE "/" "." name ${name})
    add_test(NAME ${name} COMMAND ${EPLB_TEST_PYTHON} -B ${CMAKE_CURRENT_SOURCE_DIR}/golden/run.py
                                  --eplb $<TARGET_FILE:eplb_command> ${case})
    set_tests_properties(${name} PROPERTIES LABELS golden TIMEOUT 300)
  endforeach()
endif()

add_test(NAME golden.self_test COMMAND ${EPLB_TEST_PYTHON} -B ${CMAKE_CURRENT_SOURCE_DIR}/golden/self_test.py)
set_tests_properties(golden.self_test PROPERTIES LABELS golden)
