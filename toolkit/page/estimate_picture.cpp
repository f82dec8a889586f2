#include <memprof/config.hpp>
#include <memprof/report/text/text_format.hpp>
#include <memprof/toolkit/estimate/decoder_shape.hpp>
#include <memprof/toolkit/estimate/estimate_text.hpp>
#include <memprof/toolkit/page/estimate_picture.hpp>
#include <memprof/toolkit/page/gnuplot_text.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {

namespace {

constexpr std::string_view fp32_colour = "#1f77b4";

constexpr std::string_view bf16_colour = "#ff7f0e";

/// The bars of one precision as a named gnuplot table: on each line, the centre on the axis of names and a value in GiB.
[[nodiscard]] std::string bar_table(std::string_view name, const std::vector<std::int64_t>& bytes) {
  std::string table{"$"};
  table.append(name).append(" << END_OF_BARS\n");
  for (std::size_t index = 0; index < bytes.size(); ++index) {
    table += std::to_string(index) + ' ' + decimal(static_cast<double>(bytes[index]) / 0x1p30, 9) + '\n';
  }
  return table + "END_OF_BARS\n";
}

[[nodiscard]] std::string picture_canvas(std::size_t width, std::size_t height, std::string_view path) {
  return "set encoding utf8\nset terminal pngcairo noenhanced size " + std::to_string(width) + ',' + std::to_string(height) +
         " font 'Sans,18' background rgb '#ffffff'\nset output " + gnuplot_string(path) + '\n';
}

/// The names as tics along an axis.
[[nodiscard]] std::string name_tics(std::string_view axis, const std::vector<std::string>& names, std::string_view options) {
  std::string tics;
  for (std::size_t index = 0; index < names.size(); ++index) {
    tics += (index == 0 ? "" : ", ") + gnuplot_string(names[index]) + ' ' + std::to_string(index);
  }
  return "set " + std::string{axis} + "tics (" + tics + ") " + std::string{options} + '\n';
}

}  // namespace

}  // namespace detail

std::string bucket_picture_script(const shape_estimate& estimate, std::string_view path) {
  std::vector<std::int64_t> fp32, bf16;
  std::vector<std::string> names;
  for (std::size_t index = 0; index < estimate.buckets.size(); ++index) {
    names.emplace_back(estimate_bucket_names[index]);
    fp32.push_back(estimate.buckets[index].fp32_bytes);
    bf16.push_back(estimate.buckets[index].bf16_bytes);
  }
  // "Memory By Bucket", and below it the first line of the report.
  std::string script = detail::picture_canvas(1600, 800, path);
  script += "set title 'Memory By Bucket'.\"\\n\"." + detail::gnuplot_string(detail::config_text(estimate.shape)) + '\n';
  script += "set ylabel 'GiB'\nset key top left box samplen 1.5\nset border 3\nset ytics nomirror\nset yrange [0:*]\n";
  script += "set xrange [-0.6:" + detail::decimal(static_cast<double>(names.size()) - 0.4, 1) + "]\n";
  script += detail::name_tics("x", names, "nomirror scale 0 rotate by 20 right");
  script += detail::bar_table("fp32", fp32) + detail::bar_table("bf16", bf16);
  const auto bars = [](std::string_view table, const char* low, const char* high, std::string_view colour) {
    return std::string{"$"}.append(table) + " using 1:($2/2):($1" + low + "):($1" + high +
           "):(0):2 with boxxyerror fillstyle solid 1 noborder fillcolor rgb '" + std::string{colour} + "' title '" +
           std::string{table} + "'";
  };
  return script + "plot " + bars("fp32", "-0.35", "+0", detail::fp32_colour) + ", " +
         bars("bf16", "+0", "+0.35", detail::bf16_colour) + '\n';
}

std::string contributors_picture_script(const shape_estimate& estimate, std::size_t top_k, std::string_view path) {
  std::vector<std::int64_t> fp32, bf16;
  std::vector<std::string> names;
  for (const estimated_operation& operation : top_contributors(estimate)) {
    if (names.size() == top_k) break;
    names.push_back(std::string{to_string(operation.bucket)} + ':' + operation.name);
    fp32.push_back(operation.total.fp32_bytes);
    bf16.push_back(operation.total.bf16_bytes);
  }
  const std::size_t height = std::max<std::size_t>(640, 64 * names.size() + 160);
  std::string script = detail::picture_canvas(1920, height, path);
  script += "set title 'Top " + std::to_string(top_k) + " Contributors'\n";
  script += "set xlabel 'GiB'\nset key bottom right box samplen 1.5\nset border 3\nset xtics nomirror\nset xrange [0:*]\n";
  // Room for the longest name: a letter is at most about 10 of the 1920 pixels wide.
  std::size_t letters = 0;
  for (const std::string& name : names) letters = std::max(letters, name.size());
  script += "set lmargin at screen " + detail::decimal(static_cast<double>(10 * letters + 30) / 1920, 3) + '\n';
  script += "set yrange [" + detail::decimal(static_cast<double>(std::max<std::size_t>(names.size(), 1)) - 0.4, 1) + ":-0.6]\n";
  script += detail::name_tics("y", names, "nomirror scale 0 font 'Sans,14'");
  script += detail::bar_table("fp32", fp32) + detail::bar_table("bf16", bf16);
  const auto bars = [](std::string_view table, std::string_view colour) {
    return std::string{"$"}.append(table) +
           " using ($2/2):1:(0):2:($1-0.4):($1+0.4) with boxxyerror fillstyle transparent solid 0.8 " +
           "noborder fillcolor rgb '" + std::string{colour} + "' title '" + std::string{table} + "'";
  };
  // Without an operation there is nothing to plot, and gnuplot fails on an empty table.
  if (names.empty()) return script + "set xrange [0:1]\nplot NaN notitle\n";
  return script + "plot " + bars("fp32", detail::fp32_colour) + ", " + bars("bf16", detail::bf16_colour) + '\n';
}

}  // namespace memprof::inline MEMPROF_ABI
