#include <memprof/config.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/ledger/ledger.hpp>
#include <memprof/profile/build.hpp>
#include <memprof/profile/json.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/analysis/program_name.hpp>
#include <memprof/toolkit/format/gzip.hpp>
#include <memprof/toolkit/format/trace_source_view.hpp>
#include <memprof/toolkit/page/base64.hpp>
#include <memprof/toolkit/page/html_options.hpp>
#include <memprof/toolkit/page/page.hpp>
#include <memprof/toolkit/page/page_detail.hpp>
#include <memprof/toolkit/page/page_frame.hpp>
#include <memprof/toolkit/page/page_frames.hpp>
#include <memprof/toolkit/page/page_owners.hpp>
#include <memprof/toolkit/page/page_profile.hpp>
#include <memprof/toolkit/page/page_stacks.hpp>
#include <memprof/toolkit/page/page_template.hpp>
#include <memprof/toolkit/page/run_frames.hpp>
#include <memprof/toolkit/page/run_survey.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

namespace {

/// The program of a command line, or Python's script, without its folder; "memprof" if unknown.
[[nodiscard]] std::string title_of(const profile& of, const html_options& options) {
  if (!options.title.empty()) return options.title;
  std::string program = program_in(of.process.command_line);
  if (!program.empty()) return program;
  return options.source.empty() ? "memprof" : options.source;
}

/// The page of a profile from which `cut_segments` left `segments`.
[[nodiscard]] nlohmann::ordered_json run_for_page(const profile& of, const page_segments& segments, const html_options& options) {
  nlohmann::ordered_json run = {{"format", "memprof-page"},
                                {"version", 1},
                                {"title", title_of(of, options)},
                                {"source", options.source},
                                {"profile", profile_for_page(of)},
                                {"kept_segments", nullptr},
                                {"segment_count", segments.count},
                                {"notes", options.notes},
                                {"detail", nullptr}};
  if (segments.numbers.size() != segments.count) run["kept_segments"] = segments.numbers;
  return run;
}

}  // namespace

page_data data_for_page(profile of, const html_options& options) {
  const page_segments segments = cut_segments(of);
  return {run_for_page(of, segments, options), {}};
}

page_data data_for_page(const trace_source_view& source, const html_options& options, const trace_bounds* bounds) {
  const auto survey = std::make_unique<run_survey>();
  trace_bounds::limit(survey->fold());
  source.visit(*survey);
  survey->finish();
  if (bounds != nullptr) bounds->require(survey->fold());
  if (survey->fold().events().is_overworked())
    raise("write_html: the trace would take too long, more than any of its size: it is damaged");
  profile of = build_profile_of(survey->fold(), survey->fold().take_facts());
  std::vector<std::uint8_t> spaces;
  for (std::size_t id = 0; id < ledger::max_spaces; ++id) {
    if (survey->fold().events().space(id) != nullptr) spaces.push_back(static_cast<std::uint8_t>(id));
  }
  const page_segments segments = cut_segments(of);

  constexpr std::size_t max_owners = 64;
  const page_owners owners{*survey, spaces,
                           spaces.size() <= 4 ? max_owners : std::max<std::size_t>(4 * max_owners / spaces.size(), 4)};
  std::vector<page_frame> frames = frames_for_page(*survey, spaces, owners, of);
  run_frames filling{spaces, owners, frames, segments.numbers};
  source.visit(filling);
  filling.finish();
  if (bounds != nullptr) bounds->require(survey->fold());

  page_data data{run_for_page(of, segments, options), {}};
  const std::size_t max_bytes = std::size_t{options.gzip == nullptr ? 2U : 8U} << 20U;
  const std::optional<page_stacks> stacks = stacks_for_page(source, of, *survey, options);
  page_tables tables = tables_of({*survey, spaces, owners, frames, filling, stacks}, max_bytes);
  data.run["detail"] = std::move(tables.detail);
  data.columns = std::move(tables.columns);
  return data;
}

void write_page(const page_data& data, const std::filesystem::path& path, const html_options& options) {
  const auto packed = [&](std::string_view bytes) {
    return base64(options.gzip == nullptr ? gzip_stored(bytes) : options.gzip(bytes));
  };
  const std::string run = packed(data.run.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  const std::string columns = data.run["detail"].is_null() ? std::string{} : packed(data.columns);
  replace_file(path, [&](std::FILE* file) {
    bool is_written = true;
    const auto write = [&](std::string_view text) { is_written = is_written && write_text(file, text); };
    const auto write_block = [&](std::string_view id, std::string_view text) {
      if (text.empty()) return;
      write("<script type=\"application/octet-stream\" id=\"");
      write(id);
      write("\">");
      write(text);
      write("</script>\n");
    };
    for (const std::string_view piece : page_head()) write(piece);
    write_block("memprof-run", run);
    write_block("memprof-columns", columns);
    for (const std::string_view piece : page_tail()) write(piece);
    return is_written;
  });
}

}  // namespace memprof::inline MEMPROF_ABI::detail
