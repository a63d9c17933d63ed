include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
install(TARGETS weft weft_runtime weft_core weft_base EXPORT WeftTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS weft_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY include/weft "${PROJECT_BINARY_DIR}/include/weft" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT WeftTargets NAMESPACE Weft:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Weft)
configure_package_config_file(cmake/WeftConfig.cmake.in "${PROJECT_BINARY_DIR}/WeftConfig.cmake"
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Weft)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/WeftConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
# The component `sdk`: all that an out-of-tree backend needs, installed without building anything.
install(FILES "${PROJECT_BINARY_DIR}/WeftConfig.cmake" "${PROJECT_BINARY_DIR}/WeftConfigVersion.cmake"
              cmake/WeftBackend.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Weft COMPONENT sdk)
install(DIRECTORY include/weft DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT sdk FILES_MATCHING ${weft_sdk_headers})

# Manual pages and completions, which the program makes from the definitions of its command line.
set(share "${PROJECT_BINARY_DIR}/share")
set(stamp "${PROJECT_BINARY_DIR}/share.stamp")
add_custom_command(OUTPUT "${stamp}"
  COMMAND weft_cli man --out "${share}/man/man1"
  COMMAND ${CMAKE_COMMAND} -E make_directory "${share}/bash-completion/completions" "${share}/zsh/site-functions"
          "${share}/fish/vendor_completions.d"
  COMMAND weft_cli completion bash --out "${share}/bash-completion/completions/weft"
  COMMAND weft_cli completion zsh --out "${share}/zsh/site-functions/_weft"
  COMMAND weft_cli completion fish --out "${share}/fish/vendor_completions.d/weft.fish"
  COMMAND ${CMAKE_COMMAND} -E touch "${stamp}"
  DEPENDS weft_cli COMMENT "Manual pages and completions" VERBATIM)
add_custom_target(weft_pages ALL DEPENDS "${stamp}")
install(DIRECTORY "${share}/man/" DESTINATION ${CMAKE_INSTALL_MANDIR})
install(DIRECTORY "${share}/bash-completion" "${share}/zsh" "${share}/fish" DESTINATION ${CMAKE_INSTALL_DATADIR})
