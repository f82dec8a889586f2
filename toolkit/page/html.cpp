#include <memprof/config.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/profile/trace_bounds.hpp>
#include <memprof/toolkit/page/html.hpp>
#include <memprof/toolkit/page/html_options.hpp>
#include <memprof/toolkit/page/page.hpp>
#include <memprof/trace/definitions.hpp>
#include <memprof/trace/trace.hpp>
#include <memprof/trace/trace_file.hpp>

#include <array>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

namespace {

/// A trace in a file, from its current position on.
class rest_of_file {
 public:
  rest_of_file(std::FILE* file, const std::filesystem::path& name, trace_file_status& status)
      : file_(file), begin_(std::ftell(file)), name_(name), status_(status) {}

  template <extend::trace_visitor Visitor>
  void visit(Visitor& visitor) const {
    if (std::fseek(file_, begin_, SEEK_SET) != 0) detail::raise_about_file("read", name_, detail::reason_in_errno());
    status_ = read_trace(file_, name_, visitor);
  }

 private:
  std::FILE* file_;
  long begin_;
  const std::filesystem::path& name_;
  trace_file_status& status_;
};

}  // namespace

void write_html(const profile& source, const std::filesystem::path& path, const html_options& options) {
  detail::write_page(detail::data_for_page(source, options), path, options);
}

void write_html(const trace& source, const std::filesystem::path& path, const html_options& options) {
  detail::write_page(detail::data_for_page(source, options), path, options);
}

trace_file_status write_html_of_trace_file(
    std::FILE* source, const std::filesystem::path& name, const std::filesystem::path& path, html_options options,
    const std::function<void(const trace_file_status& status, bool is_empty, html_options& options)>& add_notes) {
  trace_file_status status;
  const detail::trace_bounds bounds{name};
  detail::page_data data = detail::data_for_page(rest_of_file{source, name, status}, options, &bounds);
  add_notes(status, data.run["profile"]["spaces"].empty(), options);
  data.run["notes"] = options.notes;
  detail::write_page(data, path, options);
  return status;
}

bool is_html_page(const std::filesystem::path& path) {
  const detail::file_handle file{std::fopen(path.c_str(), "rb")};
  if (!file) return false;
  std::array<char, 1024> first{};
  const std::size_t got = std::fread(first.data(), 1, first.size(), file.get());
  return std::string_view{first.data(), got}.find(R"(<meta name="generator" content="memprof">)") != std::string_view::npos;
}

}  // namespace memprof::inline MEMPROF_ABI
