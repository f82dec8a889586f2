// The peak that a program sees of itself through new_delete.hpp equals, to the byte, what valgrind's DHAT measures from outside
// in the same run: the bytes live at its global maximum (t-gmax) in blocks whose stack has a frame of `operator new`.
//
// DHAT's maximum is that of all blocks, the profiler's own and those that only malloc knows included. So while the programs are
// captured, these stay the same: what the beginning of the capture keeps, and what the C library takes once for each thread,
// before the peak.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <scratch_folder.hpp>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace {

struct command_result {
  int status;
  std::string output;
};

command_result run(const std::string& command) {
  command_result result{-1, {}};
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return result;
  char buffer[4096];
  while (const std::size_t got = std::fread(buffer, 1, sizeof buffer, pipe)) result.output.append(buffer, got);
  result.status = ::pclose(pipe);
  return result;
}

/// Bytes at t-gmax below `operator new`, from a file of DHAT's (its "dhatFileVersion" 2).
std::int64_t bytes_under_operator_new(const std::string& path) {
  const nlohmann::json document = nlohmann::json::parse(std::ifstream{path});
  REQUIRE(document.at("dhatFileVersion") == 2);
  REQUIRE(document.at("mode") == "heap");
  std::vector<bool> is_operator_new;
  std::vector<bool> is_not_of_program;
  for (const std::string frame : document.at("ftbl")) {
    // "0x10A396: operator new(unsigned long) (new_delete.hpp:102)"
    is_operator_new.push_back(frame.find(": operator new") != std::string::npos);
    // A thread's first event asks the C library to tell the thread's end, which takes 32 bytes from calloc. The beginning of a
    // capture keeps facts, such as what the whole process held by then, in blocks from the program's `operator new`.
    is_not_of_program.push_back(frame.find("__cxa_thread_atexit") != std::string::npos ||
                                frame.find("::detail::start_capture(") != std::string::npos);
  }
  std::int64_t sum = 0;
  for (const auto& point : document.at("pps")) {
    bool is_below = false;
    bool is_own = false;
    for (const std::size_t frame : point.at("fs")) {
      is_below = is_below || is_operator_new.at(frame);
      is_own = is_own || is_not_of_program.at(frame);
    }
    if (is_below && !is_own) sum += point.at("gb").get<std::int64_t>();
  }
  return sum;
}

}  // namespace

TEST_CASE("dhat: a program's peak through new_delete equals valgrind's, to the byte") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  SKIP("valgrind cannot run a program with a sanitizer in it");
#endif
  if (run("valgrind --version 2>/dev/null").status != 0) SKIP("valgrind is not installed");

  const std::string program = GENERATE("growing_vectors", "churning_tree", "counted_words", "threads_at_a_barrier");
  const memprof_tests::scratch_folder folder;
  const std::string file = folder.file("dhat.out");
  // By default valgrind would put its own `operator new` in the place of the program's, and keep 12 frames of a stack: too few
  // to reach the beginning of the capture where nothing is inlined.
  const command_result ran =
      run("valgrind --quiet --tool=dhat --soname-synonyms=somalloc=nouserintercepts --num-callers=100 --dhat-out-file='" + file +
          "' '" DHAT_TEST_PROGRAMS "/memprof_dhat_" + program + "' 2>&1");
  INFO(program << " printed:\n" << ran.output);
  REQUIRE(ran.status == 0);
  const std::size_t printed = ran.output.find("peak ");
  REQUIRE(printed != std::string::npos);
  const std::int64_t own_peak = std::strtoll(ran.output.c_str() + printed + 5, nullptr, 10);
  CHECK(own_peak > 100'000);  // it saw its blocks
  CHECK(own_peak == bytes_under_operator_new(file));
}
