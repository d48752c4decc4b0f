# The rules of the house as tests: each check over the tree, and over its own seeded violations.
foreach(check includes words format complexity headers docs symbols)
  set(script ${PROJECT_SOURCE_DIR}/scripts/check-${check})
  add_test(NAME check.${check} COMMAND ${EPLB_TEST_PYTHON} -B ${script} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  add_test(NAME check.${check}.self_test COMMAND ${EPLB_TEST_PYTHON} -B ${script} --self-test
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(check.${check} check.${check}.self_test PROPERTIES LABELS check TIMEOUT 120)
endforeach()

# The reference of the command line is what the command prints.
add_test(NAME check.command_line COMMAND ${PROJECT_SOURCE_DIR}/scripts/check-command-line)
add_test(NAME check.command_line.self_test COMMAND ${PROJECT_SOURCE_DIR}/scripts/check-command-line --self-test)
set_tests_properties(check.command_line check.command_line.self_test PROPERTIES LABELS check TIMEOUT 120)

# The quality figures are those of the committed file; pictures and table are what the figures give.
foreach(script quality-results plot-frontier quality-table)
  add_test(NAME check.${script}.self_test COMMAND ${EPLB_TEST_PYTHON} -B ${PROJECT_SOURCE_DIR}/scripts/${script} --self-test)
  set_tests_properties(check.${script}.self_test PROPERTIES LABELS check TIMEOUT 120)
endforeach()
foreach(script plot-frontier quality-table)
  add_test(NAME check.${script} COMMAND ${EPLB_TEST_PYTHON} -B ${PROJECT_SOURCE_DIR}/scripts/${script})
  set_tests_properties(check.${script} PROPERTIES LABELS check TIMEOUT 120)
endforeach()
add_test(NAME quality COMMAND ${EPLB_TEST_PYTHON} -B ${PROJECT_SOURCE_DIR}/scripts/quality-results)
set_tests_properties(quality PROPERTIES LABELS quality TIMEOUT 600)

add_test(NAME determinism COMMAND ${PROJECT_SOURCE_DIR}/scripts/check-determinism)
add_test(NAME determinism.self_test COMMAND ${PROJECT_SOURCE_DIR}/scripts/check-determinism --self-test)
set_tests_properties(determinism determinism.self_test PROPERTIES LABELS determinism TIMEOUT 900)
