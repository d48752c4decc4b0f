# Man pages and completion come from the command itself, from the same tables as --help.
set(manual ${PROJECT_BINARY_DIR}/manual)
add_custom_command(OUTPUT ${manual}/stamp VERBATIM
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${manual}
  COMMAND ${CMAKE_COMMAND} -E make_directory ${manual}/man1
  COMMAND eplb_command --man ${manual}/man1
  COMMAND eplb_command --completion bash > ${manual}/eplb.bash
  COMMAND eplb_command --completion zsh > ${manual}/eplb.zsh
  COMMAND eplb_command --completion fish > ${manual}/eplb.fish
  COMMAND ${CMAKE_COMMAND} -E touch ${manual}/stamp
  DEPENDS eplb_command)
add_custom_target(eplb_manual ALL DEPENDS ${manual}/stamp)

install(DIRECTORY ${manual}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} FILES_MATCHING PATTERN "*.1")
install(FILES ${manual}/eplb.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME eplb)
install(FILES ${manual}/eplb.zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions RENAME _eplb)
install(FILES ${manual}/eplb.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
