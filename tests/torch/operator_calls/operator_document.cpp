#include "categories.hpp"

#include <memprof/backend/torch_no_dispatch.hpp>

#include <torch/version.h>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <fstream>
#include <map>
#include <ostream>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

// docs/torch_operators.md: every operator with a kernel of the CPU, how it is simulated, and what the judge found.

namespace operator_calls {
namespace {

constexpr const char* document = MEMPROF_SOURCE_DIR "/docs/torch_operators.md";

/// What was judged, by operator and by kind of call.
struct findings {
  std::map<std::string, tally> of_operator;
  std::vector<std::pair<std::string, tally>> of_kind;
};

findings judge_everything() {
  findings result;
  for (const extent goes : {extent::forward, extent::training}) {
    std::map<std::string, tally> of_type;
    tally of_all;
    for (const layout laid_out : all_layouts) {
      const bool trains = goes == extent::training;
      tally& of_layout = result.of_kind.emplace_back(std::string{name_of(goes)} + ", " + name_of(laid_out), tally{}).second;
      judge_all({laid_out, trains ? knowledge::indices : knowledge::sizes, goes, trains ? 1 : every_call},
                [&](const written_call& written, const operator_call&, const verdict& found) {
                  of_layout.add(found);
                  of_all.add(found);
                  of_type[written.dtype].add(found);
                  result.of_operator[written.name].add(found);
                });
    }
    tally& of_mixtures = result.of_kind.emplace_back(std::string{name_of(goes)} + ", layouts that differ", tally{}).second;
    for_each_mixture(goes, goes == extent::training ? 1 : 2, [&](const category& mixture) {
      judge_all(mixture, [&](const written_call& written, const operator_call&, const verdict& found) {
        of_mixtures.add(found);
        of_all.add(found);
        of_type[written.dtype].add(found);
        result.of_operator[written.name].add(found);
      });
    });
    for (const char* const type : {"f32", "f64", "bf16", "c64"}) {
      result.of_kind.emplace_back(std::string{name_of(goes)} + ", " + type, of_type[type]);
    }
    result.of_kind.emplace_back(std::string{name_of(goes)} + ", all", of_all);
  }
  for (const knowledge known : {knowledge::indices, knowledge::values}) {
    tally all;
    judge_all({.known = known}, [&](const written_call&, const operator_call&, const verdict& found) { all.add(found); });
    result.of_kind.emplace_back(known == knowledge::indices ? "forward, integers known" : "forward, values known", all);
  }
  return result;
}

std::map<std::string, std::string> families_of_rules() {
  std::map<std::string, std::string> families;
  for (const memprof::detail::rule_family& family : memprof::detail::rule_families) {
    for (const memprof::detail::known_rule& known : family.rules) families[known.name] = family.name;
  }
  return families;
}

/// The beginning of an operator's row, which hangs on libtorch and memprof's code alone.
std::string row_of(const operator_state& state) {
  static const std::map<std::string, std::string> families = families_of_rules();
  const auto family = families.find(state.name);
  return "| `" + state.name.substr(sizeof "aten::" - 1) + "` | " + state.on_cpu + " | " + state.on_cuda + " | " +
         (family == families.end() ? "" : family->second) + " |";
}

std::set<std::string> operators_with_calls() {
  std::set<std::string> names;
  for (const written_call& written : all_calls()) names.insert(written.name);
  return names;
}

void write_counts(std::ostream& out, const tally& all) {
  out << " " << all.calls << " | " << all.equal_results << " | " << all.equal_net << " | " << all.equal_peaks << " | "
      << all.equal_sums << " | " << all.listed << " | " << all.silent_errors << " |\n";
}

/// How many operators are simulated in each way.
std::string tables_of_ways(const std::vector<operator_state>& states) {
  std::map<std::string, std::size_t> on_cpu;
  std::map<std::string, std::size_t> on_cuda;
  for (const operator_state& state : states) {
    ++on_cpu[state.on_cpu];
    ++on_cuda[state.on_cuda];
  }
  std::string text = "| on the CPU | operators |\n|---|---:|\n";
  for (const auto& [way, count] : on_cpu) text += "| " + way + " | " + std::to_string(count) + " |\n";
  text += "\n| on fake CUDA | operators |\n|---|---:|\n";
  for (const auto& [way, count] : on_cuda) text += "| " + way + " | " + std::to_string(count) + " |\n";
  return text;
}

void write_document(std::ostream& out, const findings& found) {
  const std::vector<operator_state> states = states_of_all_operators();
  out << "# libtorch's operators, and how each is simulated\n\n"
         "Written by `memprof_torch_tests \"torch no_dispatch: writes docs/torch_operators.md\"`, with libtorch "
      << TORCH_VERSION << ": all " << states.size()
      << " operators of `aten` that have a CPU kernel or are composed of other operators. Each is called for real\n"
         "and simulated; `tests/torch/operator_calls` has the calls. Compared are the types, sizes and strides of results and\n"
         "gradients, the bytes that stay (net), the peak, and the sum of all allocations. Calls that differ are in the profile's "
         "list of approximations or of "
         "unknown\n"
         "reads, unless the last column counts them.\n\n"
         "A test compares the list of operators, the ways and the families with the code. It checks the counts only against "
         "limits,\n"
         "since what oneDNN and MKL allocate depends on the processor.\n\n"
         "## Calls by kind\n\n"
         "In forward calls only sizes are known; in backward passes also the values of integers, such as labels and indices. A "
         "backward\n"
         "pass begins with the sum of the results, whose gradient is one number, expanded. Layouts that differ: the first tensor "
         "of a "
         "call alone, or all\nbut the first, are transposed, sliced, expanded or channels last, for two calls of each type. Net "
         "differs only where sizes depend "
         "on data "
         "that\nis not known, and for `_lazy_clone`, which is cloned at once.\n\n"
         "| calls | judged | equal results | equal net | equal peak | equal sum | listed | differ silently "
         "|\n|---|---:|---:|---:|---:|---:|---:|---:|\n";
  for (const auto& [kind, counts] : found.of_kind) {
    out << "| " << kind << " |";
    write_counts(out, counts);
  }
  out << "\n## Ways\n\n[How an operator is simulated](torch_no_dispatch.md#how-an-operator-is-simulated) describes them.\n\n"
      << tables_of_ways(states);
  out << "\n## Operators\n\nWithout `aten::`. The family is the header under `backend/torch/rules/` that has the rule.\n\n"
         "| operator | on the CPU | on fake CUDA | family | judged | equal results | net | peak | sum | listed | differ silently "
         "|\n"
         "|---|---|---|---|---:|---:|---:|---:|---:|---:|---:|\n";
  std::vector<std::string> not_judged;
  for (const operator_state& state : states) {
    out << row_of(state);
    const auto counts = found.of_operator.find(state.name);
    if (counts == found.of_operator.end()) {
      not_judged.push_back(state.name.substr(sizeof "aten::" - 1));
      out << " 0 | | | | | | |\n";
    } else {
      write_counts(out, counts->second);
    }
  }
  out << "\n## Not judged\n\nOperators without a written call: those of sparse, nested and quantized tensors, of other devices' "
         "libraries (which\n"
         "have a CPU kernel in name only), of tests, and those that take no tensor.\n\n";
  for (std::size_t index = 0; index < not_judged.size(); ++index)
    out << (index == 0 ? "" : ", ") << "`" << not_judged[index] << "`";
  out << "\n";
}

}  // namespace
}  // namespace operator_calls

TEST_CASE("torch no_dispatch: writes docs/torch_operators.md", "[.report]") {
  const operator_calls::findings found = operator_calls::judge_everything();
  std::ofstream out{operator_calls::document};
  operator_calls::write_document(out, found);
  CHECK(out.good());
}

TEST_CASE("torch no_dispatch: docs/torch_operators.md has every operator, and how it is simulated") {
  using namespace operator_calls;
  std::ifstream in{document};
  std::stringstream read;
  read << in.rdbuf();
  const std::string text = read.str();
  REQUIRE_FALSE(text.empty());
  if (text.find("with libtorch " TORCH_VERSION ":") == std::string::npos) SKIP("it was written with another libtorch");
  std::size_t rows = 0;
  const std::set<std::string> called = operators_with_calls();
  const std::vector<operator_state> states = states_of_all_operators();
  CHECK(text.find(tables_of_ways(states)) != std::string::npos);
  for (const operator_state& state : states) {
    const std::string row = row_of(state);
    INFO(row);
    const std::size_t place = text.find("\n" + row);
    CHECK(place != std::string::npos);
    ++rows;
    if (place == std::string::npos || called.count(state.name) != 0) continue;
    CHECK(text.compare(place + 1 + row.size(), 3, " 0 ") == 0);
  }
  const std::size_t table = text.find("## Operators");
  CHECK(static_cast<std::size_t>(std::count(text.begin() + static_cast<std::ptrdiff_t>(table), text.end(), '\n')) >= rows);
  std::size_t written = 0;
  for (std::size_t place = text.find("\n| `", table); place != std::string::npos; place = text.find("\n| `", place + 1))
    ++written;
  CHECK(written == rows);
}
