#include <memprof/detail/file_io.hpp>
#include <scratch_folder.hpp>

#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <csignal>
#include <filesystem>
#include <iterator>
#include <string>

namespace memprof_tests::detail_file_io {

namespace fs = std::filesystem;
using memprof::detail::read_whole_file;
using memprof::detail::replace_whole_file;
using memprof_tests::scratch_folder;

namespace {

auto entries_of(const scratch_folder& folder) { return std::distance(fs::directory_iterator{folder.path()}, {}); }

/// No file may grow beyond that size: as on a full disk, a write fails in the middle.
class file_size_limit {
 public:
  explicit file_size_limit(rlim_t bytes) : previous_handler_{std::signal(SIGXFSZ, SIG_IGN)} {
    getrlimit(RLIMIT_FSIZE, &previous_);
    rlimit limited = previous_;
    limited.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limited);
  }
  file_size_limit(const file_size_limit&) = delete;
  file_size_limit& operator=(const file_size_limit&) = delete;
  ~file_size_limit() {
    setrlimit(RLIMIT_FSIZE, &previous_);
    std::signal(SIGXFSZ, previous_handler_);
  }

 private:
  rlimit previous_{};
  void (*previous_handler_)(int);
};

}  // namespace

TEST_CASE("whole_file: what was written is read back, whatever the size") {
  const scratch_folder directory;
  for (const std::size_t size : {0UL, 1UL, 65'535UL, 65'536UL, 65'537UL, 1'000'000UL}) {
    std::string text(size, '\0');
    std::generate(text.begin(), text.end(), [value = 0]() mutable { return static_cast<char>(value++); });
    replace_whole_file(directory / "file", text);
    CHECK(read_whole_file(directory / "file") == text);
  }
  CHECK(entries_of(directory) == 1);
}

TEST_CASE("whole_file: a write that fails in the middle leaves the old file and nothing else") {
  const scratch_folder directory;
  replace_whole_file(directory / "file", "old");
  std::string problem;
  {
    const file_size_limit limit{1000};
    try {
      replace_whole_file(directory / "file", std::string(100'000, 'x'));
    } catch (const memprof::error& failure) {
      problem = failure.what();
    }
  }
  CHECK(problem == "cannot write '" + (directory / "file").string() + "': File too large (for RLIMIT_FSIZE: ulimit -f)");
  CHECK(read_whole_file(directory / "file") == "old");
  CHECK(entries_of(directory) == 1);
}

TEST_CASE("whole_file: a writer that throws leaves the old file and nothing else") {
  const scratch_folder directory;
  replace_whole_file(directory / "file", "old");
  const auto damaged = [](std::FILE* file) -> bool {
    (void)memprof::detail::write_text(file, "new");
    memprof::detail::raise("the input is damaged");
  };
  CHECK_THROWS_WITH(memprof::detail::replace_file(directory / "file", damaged), "the input is damaged");
  CHECK(read_whole_file(directory / "file") == "old");
  CHECK(entries_of(directory) == 1);
}

TEST_CASE("whole_file: a full device is an error, and a device stays a device") {
  if (!fs::is_character_file("/dev/full")) SKIP("this system has no /dev/full");
  CHECK_THROWS_MATCHES(replace_whole_file("/dev/full", "text"), memprof::error,
                       Catch::Matchers::Message("cannot write '/dev/full': No space left on device"));
  replace_whole_file("/dev/null", "text");
  CHECK(fs::is_character_file("/dev/null"));
}

TEST_CASE("whole_file: a link is followed and permissions are kept") {
  const scratch_folder directory;
  replace_whole_file(directory / "file", "old");
  fs::permissions(directory / "file", fs::perms::owner_read | fs::perms::owner_write | fs::perms::others_read);
  fs::create_symlink(directory / "file", directory / "link");
  replace_whole_file(directory / "link", "new");
  CHECK(fs::is_symlink(directory / "link"));
  CHECK(read_whole_file(directory / "file") == "new");
  CHECK(fs::status(directory / "file").permissions() ==
        (fs::perms::owner_read | fs::perms::owner_write | fs::perms::others_read));
}

TEST_CASE("whole_file: a link without a target stays a link, and gets one") {
  const scratch_folder scratch;
  fs::create_symlink("target.txt", scratch / "link.txt");
  memprof::detail::replace_whole_file(scratch / "link.txt", "text");
  CHECK(fs::is_symlink(scratch / "link.txt"));
  CHECK(memprof::detail::read_whole_file(scratch / "target.txt") == "text");
  fs::create_symlink("nowhere/target.txt", scratch / "other.txt");
  CHECK_THROWS_AS(memprof::detail::replace_whole_file(scratch / "other.txt", "text"), memprof::error);
  CHECK(fs::is_symlink(scratch / "other.txt"));
}

TEST_CASE("whole_file: a file that has the temporary name already stays as it is") {
  const scratch_folder directory;
  replace_whole_file(directory / "file.tmp0", "of the user");
  replace_whole_file(directory / "file", "text");
  CHECK(read_whole_file(directory / "file.tmp0") == "of the user");
  CHECK(read_whole_file(directory / "file") == "text");
  CHECK(entries_of(directory) == 2);
}

TEST_CASE("whole_file: a directory is no file") {
  const scratch_folder directory;
  const fs::path path = directory / "";
  CHECK_THROWS_MATCHES(replace_whole_file(path, "text"), memprof::error,
                       Catch::Matchers::Message("cannot write '" + path.string() + "': it is a directory; name a file in it"));
  CHECK_THROWS_MATCHES(read_whole_file(path), memprof::error,
                       Catch::Matchers::Message("cannot read '" + path.string() + "': Is a directory"));
}

}  // namespace memprof_tests::detail_file_io
