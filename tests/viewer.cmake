# The page that reports are: its committed template is what viewer/ gives, and it does in a browser what it should. Screenshots
# of the others are left in viewer/pages/ of the build folder. They are skipped where npm or the browser is not.
set(nano_gpt)
if(TARGET nano_gpt_program)
  set(nano_gpt $<TARGET_FILE:nano_gpt_program>)
endif()
foreach(what IN ITEMS check chromium firefox)
  set(name "viewer: the committed template is what the sources give")
  if(what STREQUAL "chromium")
    set(name "viewer: pages in a browser")
  elseif(what STREQUAL "firefox")
    set(name "viewer: pages in Firefox")
  endif()
  memprof_add_static_test("${name}" ${CMAKE_CURRENT_SOURCE_DIR}/viewer/run.sh
    ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_BINARY_DIR}/viewer ${what} ${nano_gpt})
  set_tests_properties("${name}" PROPERTIES SKIP_RETURN_CODE 4 RESOURCE_LOCK viewer)
endforeach()
