# The examples are built against the shipped library and run; what they print is part of the documentation.
set(expected_plan "rank 3 slot 11: expert [0-7]\nimbalance 1\\.0[0-9]+")
set(expected_route "by shares: rank loads [0-9 ]+\nre-split: rank loads [0-9 ]+\nlargest load [0-9]+, proved\n(slot [0-9]+: [01]\\.[0-9]+ of expert [0-7]\n)+$")
file(GLOB examples CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/*.c)
foreach(file IN LISTS examples)
  get_filename_component(base ${file} NAME_WE)
  add_executable(example.${base} ${file})
  target_link_libraries(example.${base} PRIVATE eplb_static)
  add_test(NAME example.${base} COMMAND example.${base})
  set_tests_properties(example.${base} PROPERTIES LABELS example TIMEOUT 60
    PASS_REGULAR_EXPRESSION "${expected_${base}}")
endforeach()

# The first commands that a newcomer copies from the README.
if(TARGET eplb_command)
  add_test(NAME example.readme COMMAND ${EPLB_TEST_PYTHON} -B ${CMAKE_CURRENT_SOURCE_DIR}/readme/run.py
                                       $<TARGET_FILE:eplb_command>)
  set_tests_properties(example.readme PROPERTIES LABELS example TIMEOUT 120)
endif()
