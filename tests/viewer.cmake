# The page that reports are: its committed template is what viewer/ gives, and it does in a browser what it should. Screenshots
# of the second are left in viewer/pages/ of the build folder. Both are skipped where npm or Chromium is not.
set(nano_gpt)
if(TARGET nano_gpt_program)
  set(nano_gpt $<TARGET_FILE:nano_gpt_program>)
endif()
foreach(what IN ITEMS check test)
  set(name "viewer: the committed template is what the sources give")
  if(what STREQUAL "test")
    set(name "viewer: pages in a browser")
  endif()
  memprof_add_static_test("${name}" ${CMAKE_CURRENT_SOURCE_DIR}/viewer/run.sh
    ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_BINARY_DIR}/viewer ${what} ${nano_gpt})
  set_tests_properties("${name}" PROPERTIES SKIP_RETURN_CODE 4 RESOURCE_LOCK viewer TIMEOUT 900)
endforeach()
