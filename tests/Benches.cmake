# Every bench of bench/table.c runs once, quickly: the figures of the README have a command that works.
if(TARGET eplb_command AND NOT EPLB_SANITIZE AND NOT EPLB_COVERAGE)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/table.c)
  file(STRINGS ${PROJECT_SOURCE_DIR}/bench/table.c rows REGEX "^    {\"")
  foreach(row IN LISTS rows)
    string(REGEX REPLACE "^    {\"([a-z]+)\".*" "\\1" name "${row}")
    add_test(NAME bench.${name} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
             COMMAND ${EPLB_TEST_PYTHON} -B ${CMAKE_CURRENT_SOURCE_DIR}/bench/run.py $<TARGET_FILE:eplb_command> ${name})
    set_tests_properties(bench.${name} PROPERTIES LABELS bench TIMEOUT 300)
  endforeach()
endif()
