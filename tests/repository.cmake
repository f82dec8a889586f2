# Tests of the repository and of what users' projects meet. They are labelled `static`: no flag of a preset changes their
# answer, so only dev runs them.

function(memprof_add_static_test name)
  add_test(NAME ${name} COMMAND ${ARGN})
  set_tests_properties(${name} PROPERTIES LABELS static)
endfunction()

# The command must fail and must say something that matches the pattern.
function(memprof_add_failing_test name pattern)
  memprof_add_static_test(${name}
    ${CMAKE_COMMAND} "-DPATTERN=${pattern}" -P ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/expect_failure.cmake -- ${ARGN})
endfunction()

# memprof_expected_message(<file> <variable>): the pattern that a file with a fault states as `// expected: <pattern>`.
function(memprof_expected_message file variable)
  file(STRINGS ${file} line REGEX "^// expected: " LIMIT_COUNT 1)
  string(REPLACE "// expected: " "" pattern "${line}")
  set(${variable} "${pattern}" PARENT_SCOPE)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
endfunction()

# --- scripts ----------------------------------------------------------------------------------------------------------

set(scripts ${PROJECT_SOURCE_DIR}/scripts)
memprof_add_static_test("layers: no file includes upward" ${scripts}/check_layers.sh ${PROJECT_SOURCE_DIR})
memprof_add_static_test("rooms: their sizes are as CONTRIBUTING.md says" ${scripts}/room_sizes.py)
memprof_add_static_test("mutants: each still fits the code" ${scripts}/mutants.py --check)
memprof_add_static_test("single_header_is_current" ${scripts}/single_header.py --check)

# The one header that people copy, alone: a program with the warnings of a strict project, and one with all of its parts.
set(single_header_program ${CMAKE_CURRENT_BINARY_DIR}/single_header_program)
foreach(program IN ITEMS strict single_header)
  memprof_add_static_test("single header: ${program}.cpp compiles and runs" sh -c
    "'${CMAKE_CXX_COMPILER}' -std=c++20 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror \
      -DWITHOUT_JSON -I'${PROJECT_SOURCE_DIR}/single_include' -isystem '${PROJECT_SOURCE_DIR}/build/packages/usr/include' \
      '${CMAKE_CURRENT_SOURCE_DIR}/language/${program}.cpp' -o '${single_header_program}_${program}' -pthread -ldl && \
      cd '${CMAKE_CURRENT_BINARY_DIR}' && rm -f single_header.memtrace && '${single_header_program}_${program}'")
endforeach()

memprof_add_static_test("single header: its parts compile with MEMPROF_ENABLED=0" ${CMAKE_CXX_COMPILER} -std=c++20 -fsyntax-only
  -Wall -Wextra -Werror -DMEMPROF_ENABLED=0 -DMEMPROF_WITH_ALL -DMEMPROF_WITH_NEW_DELETE -DMEMPROF_WITH_MALLOC
  -DMEMPROF_WITH_CUDA_RUNTIME -I${PROJECT_SOURCE_DIR}/single_include -x c++ -include memprof/memprof.hpp /dev/null)

# A tree with one fault each, which the layer check must find.
file(GLOB_RECURSE faulty_headers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/layers/*.hpp
  ${CMAKE_CURRENT_SOURCE_DIR}/layers/*.cpp)
foreach(header IN LISTS faulty_headers)
  cmake_path(RELATIVE_PATH header BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}/layers OUTPUT_VARIABLE name)
  string(REGEX REPLACE "/.*" "" tree ${name})
  memprof_expected_message(${header} pattern)
  memprof_add_failing_test("layers: the check refuses ${tree}" "${pattern}"
    ${scripts}/check_layers.sh ${CMAKE_CURRENT_SOURCE_DIR}/layers/${tree})
endforeach()

# What users include by choice must not come in through the umbrella.
memprof_add_static_test("umbrella: it reaches no third-party header"
  sh -c "! '${CMAKE_CXX_COMPILER}' -std=c++20 -I'${PROJECT_SOURCE_DIR}/include' -M -x c++ \
    '${PROJECT_SOURCE_DIR}/include/memprof/memprof.hpp' | grep -E '/(boost|nlohmann|cuda|torch)/'")

# record.hpp is all that a file needs that only marks scopes, and small: no containers, algorithms or captures.
memprof_add_static_test("record.hpp: it suffices for a file that only marks scopes"
  ${CMAKE_CXX_COMPILER} -std=c++20 -fsyntax-only -I${PROJECT_SOURCE_DIR}/include
  ${CMAKE_CURRENT_SOURCE_DIR}/language/marks_scopes.cpp)
memprof_add_static_test("record.hpp: it reaches no heavy header"
  sh -c "! '${CMAKE_CXX_COMPILER}' -std=c++20 -I'${PROJECT_SOURCE_DIR}/include' -M -x c++ \
    '${PROJECT_SOURCE_DIR}/include/memprof/record.hpp' | tr ' ' '\\n' | \
    grep -E '/(vector|map|variant|algorithm|memory|functional|filesystem)$|memprof/(ledger|profile|report)/'")

# All that users and those who extend memprof need has a name outside the internal namespace.
memprof_add_static_test("public names: examples and documents use nothing internal"
  sh -c "! grep -rnE 'memprof::detail::' '${PROJECT_SOURCE_DIR}/examples' '${PROJECT_SOURCE_DIR}/docs' '${PROJECT_SOURCE_DIR}/README.md' \
    --include=*.cpp --include=*.hpp --include=*.md")

find_package(Python3 COMPONENTS Interpreter QUIET)
find_package(Git QUIET)
if(Python3_Interpreter_FOUND AND Git_FOUND)
  memprof_add_static_test("commit subjects: the check accepts, refuses and reads what it should"
    ${CMAKE_CURRENT_SOURCE_DIR}/commits/check_commit_subjects.py ${scripts}/commit_subjects.py ${CMAKE_CURRENT_BINARY_DIR}/commits)
endif()

# What a unit takes that includes a public header, in lines after preprocessing.
if(Python3_Interpreter_FOUND)
  set(compile_cost ${Python3_EXECUTABLE} ${scripts}/compile_cost.py --check --compiler ${CMAKE_CXX_COMPILER})
  memprof_add_static_test("compile cost: every public header is within its budget" ${compile_cost})
  memprof_add_failing_test("compile cost: a header above its budget is refused"
    "memprof/record.hpp: [0-9]+ memprof lines, 500 in the budget.*dev bench --compile --update"
    ${compile_cost} --budget ${CMAKE_CURRENT_SOURCE_DIR}/language/small_budget.txt memprof/record.hpp)

  set(compile_cost ${Python3_EXECUTABLE} ${scripts}/compile_cost.py --check-programs --compiler ${CMAKE_CXX_COMPILER})
  memprof_add_static_test("compile cost: programs are within their budget of functions and code" ${compile_cost})
  set_tests_properties("compile cost: programs are within their budget of functions and code" PROPERTIES SKIP_RETURN_CODE 4)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    string(REGEX MATCH "^[0-9]+" major ${CMAKE_CXX_COMPILER_VERSION})
    file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/small_program_budget.txt
      "compiler GNU ${major}\nprogram memprof, marks only -O0 1 100000\nprogram memprof, marks only -O2 100 10\n")
    memprof_add_failing_test("compile cost: a program above its budget is refused"
      "memprof, marks only -O0: [0-9]+ functions, 1 in the budget.*memprof, marks only -O2: [0-9]+ bytes of code, 10 in the budget"
      ${compile_cost} --budget ${CMAKE_CURRENT_BINARY_DIR}/small_program_budget.txt "memprof, marks only")
  endif()
endif()

# --- what must not compile --------------------------------------------------------------------------------------------

# With MEMPROF_FAULT the file must be refused, with the message it expects; without, it must compile: so it is that fault.
file(GLOB compile_fail_sources CONFIGURE_DEPENDS compile_fail/*.cpp)
set(compile ${CMAKE_CXX_COMPILER} -std=c++20 -fsyntax-only -DMEMPROF_SEPARATE_COMPILATION=1 -Werror=unused-result -I${PROJECT_SOURCE_DIR}/include)
foreach(source IN LISTS compile_fail_sources)
  cmake_path(GET source STEM name)
  memprof_expected_message(${source} pattern)
  memprof_add_static_test("compile_fail: ${name} compiles without its fault" ${compile} ${source})
  memprof_add_failing_test("compile_fail: ${name} is refused" "${pattern}" ${compile} -DMEMPROF_FAULT ${source})
endforeach()

# A program that leaves recording out links memprof::compiled, too: its profiles are empty, but can be printed.
memprof_add_static_test("implementation.hpp: it compiles where MEMPROF_ENABLED is 0"
  ${CMAKE_CXX_COMPILER} -std=c++20 -fsyntax-only -DMEMPROF_SEPARATE_COMPILATION=1 -DMEMPROF_ENABLED=0
  -I${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/cmake/memprof.cpp)

# What replaces operator new cannot be inline; the linker says where it belongs.
memprof_add_failing_test("new_delete.hpp: in two files it names the cause" "multiple definition of .memprof_new_delete_belongs_in_exactly_one_cpp_file"
  ${CMAKE_CXX_COMPILER} -std=c++20 -fPIC -shared -I${PROJECT_SOURCE_DIR}/include -o ${CMAKE_CURRENT_BINARY_DIR}/new_delete_twice
  ${CMAKE_CURRENT_SOURCE_DIR}/language/new_delete.cpp ${CMAKE_CURRENT_SOURCE_DIR}/language/new_delete.cpp)

memprof_add_failing_test("cuda_no_dispatch_runtime.hpp: in two files it names the cause"
  "multiple definition of .memprof_cuda_runtime_belongs_in_exactly_one_cpp_file"
  ${CMAKE_CXX_COMPILER} -std=c++20 -fPIC -shared -I${PROJECT_SOURCE_DIR}/include -o ${CMAKE_CURRENT_BINARY_DIR}/cuda_runtime_twice
  ${CMAKE_CURRENT_SOURCE_DIR}/cuda/no_dispatch_runtime.cpp ${CMAKE_CURRENT_SOURCE_DIR}/cuda/no_dispatch_runtime.cpp)

memprof_add_failing_test("malloc.hpp: after new_delete.hpp it is refused" "in place of <memprof/backend/new_delete.hpp>, not after it"
  ${CMAKE_CXX_COMPILER} -std=c++20 -fsyntax-only -I${PROJECT_SOURCE_DIR}/include
  -include memprof/backend/new_delete.hpp ${PROJECT_SOURCE_DIR}/include/memprof/backend/malloc.hpp)

# An older language ends each header with one #error, not with a page of them.
memprof_add_static_test("C++17: every header ends with one #error"
  ${CMAKE_CURRENT_SOURCE_DIR}/language/expect_one_error.sh ${CMAKE_CXX_COMPILER} ${PROJECT_SOURCE_DIR}/include)

# Programs and headers with the warnings of a strict project, by the two compilers that differ most: ctest -L compilers. Every one that there is, and
# every combination of flags: tests/language/check_compilers.py --long, which ./dev test --long runs.
if(Python3_Interpreter_FOUND)
  set(check_compilers ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/language/check_compilers.py)
  execute_process(COMMAND ${check_compilers} --list-usual OUTPUT_VARIABLE compilers OUTPUT_STRIP_TRAILING_WHITESPACE
    COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "\n" ";" compilers "${compilers}")
  foreach(compiler IN LISTS compilers)
    if(compiler MATCHES "^absent: (.*)")
      message(STATUS "skipped: tests with ${CMAKE_MATCH_1}")
    else()
      memprof_add_static_test("compilers: ${compiler}" ${check_compilers} --only ${compiler})
      set_tests_properties("compilers: ${compiler}" PROPERTIES LABELS "static;compilers")
    endif()
  endforeach()
endif()

# libc++ before version 16 has no <memory_resource>: memprof::memory_resource says so when it is used, all else works.
find_program(memprof_clang clang++)
mark_as_advanced(memprof_clang)
set(libcxx ${CMAKE_CURRENT_SOURCE_DIR}/libcxx)
set(compile_with_libcxx ${memprof_clang} -stdlib=libc++ -std=c++20 -Wall -Wextra -Werror -I${PROJECT_SOURCE_DIR}/include)
set(libcxx_works 1)
if(memprof_clang)
  execute_process(COMMAND ${compile_with_libcxx} ${libcxx}/probe.cpp -o ${CMAKE_CURRENT_BINARY_DIR}/libcxx_probe
    RESULT_VARIABLE libcxx_works OUTPUT_QUIET ERROR_QUIET)
endif()
if(NOT libcxx_works EQUAL 0)
  message(STATUS "skipped: tests with libc++, which need clang, libc++-dev and libc++abi-dev")
else()
  set(libcxx_program ${CMAKE_CURRENT_BINARY_DIR}/libcxx_program)
  memprof_add_static_test("libc++: a program records without memory_resource"
    sh -c "'${memprof_clang}' -stdlib=libc++ -std=c++20 -Wall -Wextra -Werror -I'${PROJECT_SOURCE_DIR}/include' '${libcxx}/records.cpp' \
      -o '${libcxx_program}' -pthread -ldl && '${libcxx_program}'")
  execute_process(COMMAND ${compile_with_libcxx} -fsyntax-only -include memory_resource ${libcxx}/probe.cpp
    RESULT_VARIABLE has_no_memory_resource OUTPUT_QUIET ERROR_QUIET)
  if(has_no_memory_resource)
    memprof_add_failing_test("libc++: memory_resource says what it needs" "memory_resource needs <memory_resource>: use libc.. 16 or newer"
      ${compile_with_libcxx} -fsyntax-only -DUSE_MEMORY_RESOURCE ${libcxx}/records.cpp)
  endif()
endif()

# --- users' projects --------------------------------------------------------------------------------------------------

set(consumers ${CMAKE_CURRENT_SOURCE_DIR}/consumer)
set(consumer_builds ${CMAKE_CURRENT_BINARY_DIR}/consumer)
set(prefix ${consumer_builds}/prefix)

# memprof_add_consumer_test(<name> <folder> <option>...): configure, build and run a small project.
function(memprof_add_consumer_test name folder)
  string(MAKE_C_IDENTIFIER ${name} build)
  memprof_add_static_test("consumer: ${name}"
    ${CMAKE_CTEST_COMMAND} --build-and-test ${consumers}/${folder} ${consumer_builds}/${build}
    --build-generator ${CMAKE_GENERATOR}
    --build-options -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER} ${ARGN}
    --test-command consumer)
endfunction()

# Compiling the toolkit takes minutes. Where that is not asked for, a subproject compiles the page, a seventh of it; of a toolkit that is found the
# files are compared, and the one that is built here is linked.
set(toolkit_library toolkit_page)
set(toolkit_hook)
set(toolkit_folder)
if(MEMPROF_LONG_TESTS)
  set(toolkit_library toolkit)
elseif(TARGET memprof_toolkit)
  set(toolkit_hook ${consumers}/built_toolkit.cmake)
  set(toolkit_folder $<TARGET_FILE_DIR:memprof_toolkit>)
endif()

memprof_add_consumer_test("add_subdirectory" add_subdirectory
  -DMEMPROF_SOURCE_DIR=${PROJECT_SOURCE_DIR} -DCMAKE_DISABLE_FIND_PACKAGE_nlohmann_json=ON)
memprof_add_consumer_test("add_subdirectory with MEMPROF_JSON" add_subdirectory
  -DMEMPROF_SOURCE_DIR=${PROJECT_SOURCE_DIR} -DMEMPROF_JSON=ON)
memprof_add_consumer_test("add_subdirectory with MEMPROF_TOOLKIT" add_subdirectory
  -DMEMPROF_SOURCE_DIR=${PROJECT_SOURCE_DIR} -DMEMPROF_TOOLKIT=ON -DLIBRARY=${toolkit_library})

memprof_add_static_test("consumer: install"
  sh -c "rm -rf '${prefix}' && '${CMAKE_COMMAND}' --install '${PROJECT_BINARY_DIR}' --prefix '${prefix}'")
set_tests_properties("consumer: install" PROPERTIES FIXTURES_SETUP installed_memprof)

# Without a build, into another folder than "include".
set(headers_only ${consumer_builds}/headers_only)
memprof_add_static_test("consumer: install without a build, headers where CMAKE_INSTALL_INCLUDEDIR says"
  sh -c "'${CMAKE_COMMAND}' --fresh -S '${PROJECT_SOURCE_DIR}' -B '${headers_only}' -G '${CMAKE_GENERATOR}' \
    -DCMAKE_CXX_COMPILER='${CMAKE_CXX_COMPILER}' -DMEMPROF_DEVELOPMENT=OFF -DMEMPROF_TOOLS=OFF -DCMAKE_INSTALL_INCLUDEDIR=include/deep && \
    rm -rf '${prefix}_deep' && '${CMAKE_COMMAND}' --install '${headers_only}' --prefix '${prefix}_deep' && \
    test -f '${prefix}_deep/include/deep/memprof/memprof.hpp' && test ! -e '${prefix}_deep/include/memprof'")
set_tests_properties("consumer: install without a build, headers where CMAKE_INSTALL_INCLUDEDIR says"
  PROPERTIES FIXTURES_SETUP memprof_in_a_deep_folder)
memprof_add_consumer_test("find_package with another folder of headers" find_package
  -DPROGRAM=marks_only -DCMAKE_PREFIX_PATH=${prefix}_deep -DWANTED_VERSION=${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
set_tests_properties("consumer: find_package with another folder of headers" PROPERTIES FIXTURES_REQUIRED memprof_in_a_deep_folder)

# The components of the install, one after the other.
set(prefix_of_parts ${prefix}_parts)
memprof_add_static_test("consumer: install of the component headers has nothing of the toolkit"
  sh -c "rm -rf '${prefix_of_parts}' && '${CMAKE_COMMAND}' --install '${PROJECT_BINARY_DIR}' --component headers --prefix '${prefix_of_parts}' && \
    test -f '${prefix_of_parts}/include/memprof/memprof.hpp' && ! find '${prefix_of_parts}' | grep toolkit")
set_tests_properties("consumer: install of the component headers has nothing of the toolkit" PROPERTIES FIXTURES_SETUP installed_headers)
memprof_add_static_test("consumer: install of the component toolkit adds it"
  ${CMAKE_COMMAND} --install ${PROJECT_BINARY_DIR} --component toolkit --prefix ${prefix_of_parts})

# JSON is left out with a word where its libraries are missing, unless it was asked for.
set(without_json ${consumer_builds}/without_json)
set(configure_without_json ${CMAKE_COMMAND} --fresh -S ${PROJECT_SOURCE_DIR} -B ${without_json} -G ${CMAKE_GENERATOR}
  -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER} -DCMAKE_DISABLE_FIND_PACKAGE_nlohmann_json=ON)
memprof_add_static_test("configure: without nlohmann/json it leaves memprof::json out and says so" ${configure_without_json})
set_tests_properties("configure: without nlohmann/json it leaves memprof::json out and says so" PROPERTIES
  PASS_REGULAR_EXPRESSION "skipped: memprof::json: nlohmann_json.* was not found.*Build files have been written"
  RESOURCE_LOCK configure_without_json)
memprof_add_failing_test("configure: MEMPROF_JSON=ON without nlohmann/json is refused" "nlohmann_json"
  ${configure_without_json} -DMEMPROF_JSON=ON)
set_tests_properties("configure: MEMPROF_JSON=ON without nlohmann/json is refused" PROPERTIES RESOURCE_LOCK configure_without_json)

set(version ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
memprof_add_consumer_test("find_package" find_package
  -DCMAKE_PREFIX_PATH=${prefix} -DWANTED_VERSION=${version}
  -DCMAKE_DISABLE_FIND_PACKAGE_nlohmann_json=ON)
memprof_add_consumer_test("find_package COMPONENTS json" find_package
  -DCMAKE_PREFIX_PATH=${prefix} -DWANTED_VERSION=${version} -DWANTED_COMPONENT=json)
memprof_add_consumer_test("find_package COMPONENTS compiled" find_package
  -DCMAKE_PREFIX_PATH=${prefix} -DWANTED_VERSION=${version} -DWANTED_COMPONENT=compiled)
memprof_add_consumer_test("find_package COMPONENTS toolkit" find_package
  -DCMAKE_PREFIX_PATH=${prefix} -DWANTED_VERSION=${version} -DWANTED_COMPONENT=toolkit
  -DCMAKE_PROJECT_memprof_consumer_INCLUDE=${toolkit_hook} -DBUILT_TOOLKIT=${toolkit_folder})

# memprof_add_refused_consumer_test(<name> <pattern> <option>...): find_package must refuse, and say why.
function(memprof_add_refused_consumer_test name pattern)
  string(MAKE_C_IDENTIFIER ${name} build)
  memprof_add_failing_test("consumer: ${name} is refused" "${pattern}"
    ${CMAKE_COMMAND} --fresh -S ${consumers}/find_package -B ${consumer_builds}/${build} -G ${CMAKE_GENERATOR}
    -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER} -DCMAKE_PREFIX_PATH=${prefix} ${ARGN})
endfunction()

math(EXPR next_minor "${PROJECT_VERSION_MINOR} + 1")
memprof_add_refused_consumer_test("a later minor version" "version: ${PROJECT_VERSION}"
  -DWANTED_VERSION=${PROJECT_VERSION_MAJOR}.${next_minor})
math(EXPR next_major "${PROJECT_VERSION_MAJOR} + 1")
memprof_add_refused_consumer_test("a later major version" "version: ${PROJECT_VERSION}" -DWANTED_VERSION=${next_major}.0)
memprof_add_refused_consumer_test("an unknown component" "has no component \"jsn\""
  -DWANTED_VERSION=${version} -DWANTED_COMPONENT=jsn)
memprof_add_refused_consumer_test("json without nlohmann" "nlohmann_json"
  -DWANTED_VERSION=${version} -DWANTED_COMPONENT=json -DCMAKE_DISABLE_FIND_PACKAGE_nlohmann_json=ON)

# Refused before the component is there, and found afterwards.
memprof_add_refused_consumer_test("the toolkit where only headers are" "without[^a-z]+its[^a-z]+toolkit"
  -DCMAKE_PREFIX_PATH=${prefix_of_parts} -DWANTED_VERSION=${version} -DWANTED_COMPONENT=toolkit)
set_tests_properties("consumer: the toolkit where only headers are is refused" PROPERTIES FIXTURES_REQUIRED installed_headers)
set_tests_properties("consumer: install of the component toolkit adds it" PROPERTIES
  FIXTURES_REQUIRED installed_headers FIXTURES_SETUP installed_toolkit DEPENDS "consumer: the toolkit where only headers are is refused")
memprof_add_consumer_test("find_package of a toolkit installed alone" find_package
  -DCMAKE_PREFIX_PATH=${prefix_of_parts} -DWANTED_VERSION=${version} -DWANTED_COMPONENT=toolkit
  -DCMAKE_PROJECT_memprof_consumer_INCLUDE=${toolkit_hook} -DBUILT_TOOLKIT=${toolkit_folder})
set_tests_properties("consumer: find_package of a toolkit installed alone" PROPERTIES FIXTURES_REQUIRED installed_toolkit)

set_tests_properties(
  "consumer: find_package"
  "consumer: find_package COMPONENTS json"
  "consumer: find_package COMPONENTS compiled"
  "consumer: find_package COMPONENTS toolkit"
  "consumer: a later minor version is refused"
  "consumer: a later major version is refused"
  "consumer: an unknown component is refused"
  "consumer: json without nlohmann is refused"
  PROPERTIES FIXTURES_REQUIRED installed_memprof)

include(packaging.cmake)
