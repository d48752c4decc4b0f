# The rules of the house as tests: each check over the tree, and over its own seeded violations.
foreach(check includes words format complexity headers docs symbols)
  set(script ${PROJECT_SOURCE_DIR}/scripts/check-${check})
  add_test(NAME check.${check} COMMAND ${EPLB_PYTHON} -B ${script} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  add_test(NAME check.${check}.self_test COMMAND ${EPLB_PYTHON} -B ${script} --self-test
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(check.${check} check.${check}.self_test PROPERTIES LABELS check TIMEOUT 120)
endforeach()

# Only worth it, and only possible, once there are plans.
if(EXISTS ${PROJECT_SOURCE_DIR}/src/plan/plan.c)
  foreach(argument "" --self-test)
    string(REGEX REPLACE "^--self-test" ".self_test" suffix "${argument}")
    add_test(NAME determinism${suffix} COMMAND ${PROJECT_SOURCE_DIR}/scripts/check-determinism ${argument})
    set_tests_properties(determinism${suffix} PROPERTIES LABELS determinism TIMEOUT 900)
  endforeach()
endif()
