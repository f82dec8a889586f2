#include "output_file.hpp"

#include "temporary_folder.hpp"
#include "text_output.hpp"

#include <memprof/detail/file_io.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <exception>
#include <system_error>

namespace memprof_tool {

void keep_input(const std::string& input, const std::string& output) {
  // A shell may have opened either.
  const std::filesystem::path from = input == "-" ? "/dev/stdin" : input;
  const std::filesystem::path to = output == standard_output ? "/dev/stdout" : output;
  std::error_code failure;  // a missing file cannot be the input
  if (!std::filesystem::is_regular_file(to, failure) || !std::filesystem::equivalent(from, to, failure)) return;
  memprof::detail::raise_about_file("write", output, "it is the input file; choose another output");
}

void keep_apart(const std::string& output, const std::string& other) {
  if (output.empty() || other.empty()) return;
  const auto path = [](const std::string& name) { return std::filesystem::absolute(name).lexically_normal(); };
  std::error_code failure;  // a missing file is equivalent to none
  if (path(output) != path(other) && !std::filesystem::equivalent(output, other, failure)) return;
  memprof::detail::raise_about_file("write", other, "it is another output, too; choose another name for one of them");
}

void keep_other_file(const std::filesystem::path& output, const file_kind& kind, const std::string& remedy) {
  if (output == standard_output) return;
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(output, ignored) || std::filesystem::file_size(output, ignored) == 0) return;
  const memprof::detail::file_handle file{std::fopen(output.c_str(), "rb")};
  std::array<char, 1024> begin{};
  const std::size_t got = file ? std::fread(begin.data(), 1, begin.size(), file.get()) : 0;
  if (kind.is_kind({begin.data(), got})) return;
  memprof::detail::raise_about_file("write", output, "it exists and is not " + std::string{kind.name} + "; " + remedy);
}

bool is_printed(const std::vector<std::string>& outputs, const std::string& other_option) {
  if (std::find(outputs.begin(), outputs.end(), standard_output) == outputs.end()) return false;
  if (other_option.empty()) return true;
  memprof::detail::raise("'-': " + other_option + " prints to the standard output, too; choose a file for one of them");
}

void keep_terminal(const std::string& output, std::string_view format) {
  if (output != standard_output || ::isatty(STDOUT_FILENO) != 1) return;
  memprof::detail::raise("'-': the standard output is a terminal, and " + std::string{format} + " is not text");
}

namespace {

/// Writes to the standard output. Text on a terminal is escaped as everywhere.
bool write_standard_output(const std::function<bool(std::FILE* file)>& write, bool seeks) {
  const bool is_terminal = ::isatty(STDOUT_FILENO) == 1;
  if (!is_terminal && !seeks) return write(stdout);
  const memprof::detail::file_handle copy{std::tmpfile()};
  if (!copy || !write(copy.get()) || std::fflush(copy.get()) != 0) return false;
  std::rewind(copy.get());
  std::array<char, std::size_t{1} << 16> buffer{};
  while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), copy.get())) print({buffer.data(), got});
  return std::ferror(copy.get()) == 0;
}

}  // namespace

void write_output(const std::filesystem::path& output, const std::function<bool(std::FILE* file)>& write, bool seeks) {
  if (output == standard_output) {
    if (write_standard_output(write, seeks) && std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
    throw output_error{"cannot write to the standard output: " + memprof::detail::reason_in_errno()};
  }
  std::exception_ptr fault_of_input;
  try {
    memprof::detail::replace_file(output, [&](std::FILE* file) {
      try {
        return write(file);
      } catch (...) {
        fault_of_input = std::current_exception();
        return false;
      }
    });
  } catch (const memprof::error& fault) {
    if (fault_of_input) std::rethrow_exception(fault_of_input);
    throw output_error{fault.what()};
  }
}

void write_output(const std::filesystem::path& output, std::string_view text) {
  write_output(output, [text](std::FILE* file) { return memprof::detail::write_text(file, text); });
}

void write_named_output(const std::filesystem::path& output,
                        const std::function<void(const std::filesystem::path& name)>& write) {
  if (output != standard_output) return write(output);
  const temporary_folder folder;
  const std::filesystem::path name = folder.path() / "output";
  write(name);
  write_output(output, memprof::detail::read_whole_file(name));
}

}  // namespace memprof_tool
