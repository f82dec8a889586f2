#include <memprof/config.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/toolkit/format/byte_sink.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_json_check.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_json.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_run_folder.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace {

namespace fs = std::filesystem;

/// The name of a folder without its date and time: "decoder" for "decoder_20260122_143957".
[[nodiscard]] std::string tt_run_of_folder(const fs::path& folder) {
  std::string name = folder.filename().string();
  for (int part = 0; part < 2; ++part) {
    const std::size_t at = name.rfind('_');
    if (at != std::string::npos && at != 0) name.resize(at);
  }
  return name;
}

template <class Write>
void write_tt_file(const fs::path& path, Write&& write) {
  detail::replace_file(path, [&](std::FILE* file) {
    file_sink sink{file};
    write(sink);
    return sink.is_good();
  });
}

[[nodiscard]] detail::file_handle opened_tt_file(const fs::path& path) {
  detail::file_handle file{std::fopen(path.c_str(), "rb")};
  if (!file) detail::raise_about_file("read", path, detail::reason_in_errno());
  return file;
}

}  // namespace

std::string tt_run_of_log(const fs::path& log) {
  constexpr std::string_view ending = "_profile";
  std::string name = log.stem().string();
  if (name.size() > ending.size() && name.ends_with(ending)) name.resize(name.size() - ending.size());
  return name;
}

fs::path tt_log_in(const fs::path& folder) {
  std::error_code failure;
  if (!fs::is_directory(folder, failure)) detail::raise_about_file("read", folder, "it is not the folder of a run");
  fs::path usual = folder / (tt_run_of_folder(folder) + "_profile.log");
  if (fs::exists(usual, failure)) return usual;
  std::vector<fs::path> found;
  for (const fs::directory_entry& entry : fs::directory_iterator{folder, failure}) {
    if (entry.path().filename().string().ends_with("_profile.log")) found.push_back(entry.path());
  }
  if (found.size() == 1) return found.front();
  detail::raise_about_file("read", folder, "there is no '" + usual.filename().string() + "' in it");
}

fs::path make_tt_run_folder(const fs::path& base, const std::string& name) {
  std::error_code failure;
  fs::create_directories(base, failure);
  constexpr int attempts = 100;
  for (int attempt = 0; attempt < attempts && !failure; ++attempt) {
    const std::time_t now = std::time(nullptr);
    std::tm local{};
    ::localtime_r(&now, &local);
    std::array<char, 32> stamp{};
    const std::size_t size = std::strftime(stamp.data(), stamp.size(), "_%Y%m%d_%H%M%S", &local);
    fs::path folder = base / (name + std::string{stamp.data(), size});
    if (fs::create_directory(folder, failure)) return folder;
    if (!failure) std::this_thread::sleep_for(std::chrono::milliseconds{100});  // another run began in this second
  }
  detail::raise("cannot create a folder in '" + base.string() + "': " + failure.message());
}

std::uint64_t write_tt_files(std::FILE* log, const fs::path& path, const tt_log_content& content, const tt_rank_summary& rank,
                             const fs::path& memory, const fs::path& operations) {
  write_tt_file(memory, [&](file_sink& to_memory) {
    write_tt_file(operations,
                  [&](file_sink& to_operations) { write_tt_json(log, path, rank, content.inputs, to_memory, to_operations); });
  });
  const detail::file_handle first = opened_tt_file(memory);
  const detail::file_handle second = opened_tt_file(operations);
  std::uint64_t count = 0;
  const std::string fault = validate_tt_json(first.get(), second.get(), count);
  if (!fault.empty() || count != rank.operations) {
    detail::raise("'" + memory.string() + "' and '" + operations.string() +
                  "' do not match: " + (fault.empty() ? "operations are missing" : fault));
  }
  return count;
}

void write_tt_inputs_file(const tt_log_content& content, const fs::path& path) {
  write_tt_file(path, [&](file_sink& sink) { write_tt_inputs(content, sink); });
}

}  // namespace memprof::inline MEMPROF_ABI
