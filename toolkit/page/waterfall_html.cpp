#include <memprof/config.hpp>
#include <memprof/toolkit/analysis/waterfall.hpp>
#include <memprof/toolkit/analysis/waterfall_json.hpp>
#include <memprof/toolkit/page/html_options.hpp>
#include <memprof/toolkit/page/page.hpp>
#include <memprof/toolkit/page/waterfall_html.hpp>

#include <filesystem>

namespace memprof::inline MEMPROF_ABI {

void write_html(const waterfall& of, const std::filesystem::path& path, const html_options& options) {
  detail::page_data data{to_json(of), {}};
  data.run["title"] = options.title.empty() ? "Waterfall" : options.title;
  data.run["notes"] = options.notes;
  data.run["detail"] = nullptr;  // no columns
  detail::write_page(data, path, options);
}

}  // namespace memprof::inline MEMPROF_ABI
