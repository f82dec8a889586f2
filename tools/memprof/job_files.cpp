#include "job_files.hpp"

#include "output_file.hpp"

#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace memprof_tool {
namespace {

constexpr std::string_view digits = "0123456789";

/// The number in "_rank3", or -1.
std::int64_t rank_in(std::string_view name) {
  constexpr std::string_view mark = "_rank";
  constexpr std::size_t most_digits = 9;
  const std::size_t at = name.rfind(mark);
  if (at == name.npos) return -1;
  std::string_view number = name.substr(at + mark.size());
  number = number.substr(0, number.find_first_not_of(digits));
  return number.empty() || number.size() > most_digits ? -1 : std::stoll(std::string{number});
}

/// Whether it is a session's profile that had not yet got its name: "memory_profile_20250113_103000_rank3.tmp4711".
bool is_leftover(const std::string& name) {
  constexpr std::string_view mark = ".tmp";
  const std::size_t at = name.rfind(mark);
  return name.starts_with("memory_profile_") && at != name.npos && at + mark.size() < name.size() &&
         name.find_first_not_of(digits, at + mark.size()) == name.npos;
}

/// Whether a file that may be any JSON is a profile.
bool is_profile(const std::filesystem::path& path) {
  const memprof::detail::file_handle file{std::fopen(path.c_str(), "rb")};
  std::array<char, 1024> begin{};
  const std::size_t got = file ? std::fread(begin.data(), 1, begin.size(), file.get()) : 0;
  return !file || profile_file_kind.is_kind({begin.data(), got});  // one that cannot be opened is complained about later
}

void add_folder(std::vector<job_file>& files, const std::string& folder) {
  const std::size_t before = files.size();
  std::error_code failure;
  std::filesystem::directory_iterator entry{folder, failure};
  for (; !failure && entry != std::filesystem::directory_iterator{}; entry.increment(failure)) {
    std::error_code ignored;
    const std::filesystem::path& path = entry->path();
    if (!entry->is_regular_file(ignored)) continue;
    const std::string name = path.filename().string();
    const bool is_left = is_leftover(name);
    if (!is_left && path.extension() != ".memtrace" && (path.extension() != ".json" || !is_profile(path))) continue;
    files.push_back({path.string(), {}, rank_in(name), is_left});
  }
  if (failure) memprof::detail::raise_about_file("read", folder, failure.message());
  if (files.size() == before) {
    memprof::detail::raise("'" + folder +
                           "' has neither profiles (.json) nor traces (.memtrace); name the folder into which the ranks wrote");
  }
}

}  // namespace

std::vector<job_file> files_of_job(const std::vector<std::string>& paths) {
  std::vector<job_file> files;
  for (const std::string& path : paths) {
    std::error_code ignored;
    if (path.empty()) memprof::detail::raise("the name is empty");
    if (std::filesystem::is_directory(path, ignored)) {
      add_folder(files, path);
    } else {
      files.push_back({path, {}, rank_in(std::filesystem::path{path}.filename().string()), false});
    }
  }
  const auto by_path = [](const job_file& left, const job_file& right) { return left.path < right.path; };
  const auto is_same = [](const job_file& left, const job_file& right) { return left.path == right.path; };
  std::sort(files.begin(), files.end(), by_path);
  files.erase(std::unique(files.begin(), files.end(), is_same), files.end());
  std::vector<job_file> result;
  for (job_file& file : files) {
    const std::filesystem::path path{file.path};
    if (path.extension() == ".memtrace") {
      const std::string profile = std::filesystem::path{path}.replace_extension(".json").string();
      const auto found = std::lower_bound(result.begin(), result.end(), job_file{profile, {}, -1, false}, by_path);
      if (found != result.end() && found->path == profile) {
        found->trace = file.path;
        continue;
      }
    }
    result.push_back(std::move(file));
  }
  return result;
}

}  // namespace memprof_tool
