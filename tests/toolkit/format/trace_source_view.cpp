#include <memprof/toolkit/format/trace_source_view.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/definitions.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/label.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace memprof_tests::format_trace_source_view {

namespace {

/// A record of each kind, and whether the visitor finds the saved state sound.
struct one_of_each {
  bool* is_sound;

  template <memprof::extend::trace_visitor Visitor>
  void visit(Visitor& visitor) const {
    const memprof::extend::event happened[2]{};
    memprof::extend::capture_info info;
    info.process.command_line = "train";
    visitor.info(info);
    visitor.name(memprof::extend::label{3}, "loss");
    visitor.space({5, memprof::extend::label{3}, 80});
    visitor.facts({{"table", {"a"}, {{std::int64_t{1}}}}, 7, 0});
    visitor.events(happened, happened + 2, 9);
    if constexpr (requires(const memprof::detail::saved_state_part& part) { visitor.saved_state(part); })
      *is_sound = visitor.saved_state({4, true, "bytes"});
  }
};

struct noting_visitor {
  std::vector<std::string> seen;

  void info(const memprof::extend::capture_info& info) { seen.push_back(info.process.command_line); }
  void name(memprof::extend::label id, std::string_view text) { seen.push_back(std::to_string(id) + std::string{text}); }
  void space(const memprof::extend::space_definition& space) {
    seen.push_back(std::to_string(space.id) + " " + std::to_string(space.name) + " " + std::to_string(space.capacity));
  }
  void facts(memprof::extend::fact_part&& part) { seen.push_back(part.table.name + std::to_string(part.first_row)); }
  void events(const memprof::extend::event* first, const memprof::extend::event* last, std::uint32_t ring) {
    seen.push_back(std::to_string(last - first) + " of " + std::to_string(ring));
  }
};

struct framed_visitor : noting_visitor {
  bool saved_state(const memprof::detail::saved_state_part& part) {
    seen.push_back(std::to_string(part.index) + std::string{part.bytes});
    return false;
  }
};

const std::vector<std::string> all{"train", "3loss", "5 3 80", "table7", "2 of 9"};

}  // namespace

TEST_CASE("trace source view: every record reaches the visitor") {
  bool is_sound = false;
  const one_of_each source{&is_sound};
  noting_visitor visitor;
  memprof::trace_source_view{source}.visit(visitor);
  CHECK(visitor.seen == all);
  CHECK(is_sound);
}

TEST_CASE("trace source view: saved states reach a visitor that takes them, and its answer the source") {
  bool is_sound = true;
  const one_of_each source{&is_sound};
  framed_visitor visitor;
  memprof::trace_source_view{source}.visit(visitor);
  std::vector<std::string> expected = all;
  expected.emplace_back("4bytes");
  CHECK(visitor.seen == expected);
  CHECK_FALSE(is_sound);
}

}  // namespace memprof_tests::format_trace_source_view
