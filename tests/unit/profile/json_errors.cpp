#include <memprof/profile/json.hpp>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstddef>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "filled_profile.hpp"

namespace memprof_tests::profile_json_errors {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::Equals;
using Catch::Matchers::StartsWith;
using nlohmann::ordered_json;

namespace {

template <class Function>
std::string error_of(Function function) {
  try {
    function();
  } catch (const memprof::error& problem) {
    return problem.what();
  }
  return "no error";
}

std::string error_in_text(const std::string& text) {
  return error_of([&] { (void)memprof::parse_json(text, "run.json"); });
}

std::string error_in(const ordered_json& document) {
  return error_of([&] { (void)memprof::from_json(document, "run.json"); });
}

/// The JSON pointers of all values in a document; of array elements only the last, which is as good as any.
void list_pointers(const ordered_json& value, const std::string& here, std::vector<std::string>& pointers) {
  if (!here.empty()) pointers.push_back(here);
  if (value.is_array() && !value.empty()) {
    const std::size_t last = value.size() - 1;
    list_pointers(value[last], here + "/" + std::to_string(last), pointers);
  } else if (value.is_object()) {
    for (const auto& member : value.items()) list_pointers(member.value(), here + "/" + member.key(), pointers);
  }
}

std::vector<std::string> all_pointers(const ordered_json& document) {
  std::vector<std::string> pointers;
  list_pointers(document, "", pointers);
  return pointers;
}

ordered_json& parent_of(ordered_json& document, const std::string& pointer) {
  return document[ordered_json::json_pointer{pointer.substr(0, pointer.rfind('/'))}];
}

const std::string start = "cannot read a profile from 'run.json': ";

}  // namespace

TEST_CASE("json errors: invalid JSON is named with file and byte offset") {
  const auto says = [](const std::string& text, const std::string& fault) {
    CHECK_THAT(error_in_text(text), Equals(start + fault + "; write it again with memprof::write_json"));
  };
  says(R"({"a": tru})", "invalid JSON at byte 9: expected a value");
  says("{} x", "invalid JSON at byte 3: expected nothing after the document");
  says("{\"a\xff\": 1}", "invalid JSON at byte 3: expected UTF-8 in a string");
  says("{\"a\x1b[31m\": 1}", "invalid JSON at byte 3: expected an escape such as \\n in place of a control character");
  says(R"({"a": "\x"})", "invalid JSON at byte 8: expected a valid JSON escape");
  says(R"({"a": 1e999})", "invalid JSON at byte 10: expected a number below 1.8e308");
  says(R"({"a": -})", "invalid JSON at byte 7: expected a digit");
  says(R"({"a": 1,})", "invalid JSON at byte 8: expected a key in quotation marks");
  says(R"({"a" 1})", "invalid JSON at byte 5: expected a colon after the key");
  says(R"({"a": 1 "b": 2})", "invalid JSON at byte 10: expected a comma or a closing brace");
  says(R"({"a": [1 2]})", "invalid JSON at byte 9: expected a comma or a closing bracket");
  says("", "it is empty");
  // The document's words are not taken for the parser's.
  says("{\"ill-formed UTF-8\" 1}", "invalid JSON at byte 20: expected a colon after the key");
  says("{\"a\": while parsing array", "invalid JSON at byte 6: expected a value");
}

TEST_CASE("json errors: a file cut off anywhere is reported as cut off") {
  const std::string whole = memprof::to_json(memprof_tests::small_profile()).dump();
  for (std::size_t size = 1; size < whole.size(); ++size) {
    const std::string found = error_in_text(whole.substr(0, size));
    const std::string expected =
        start + "it is cut off after " + std::to_string(size) + " bytes; write it again with memprof::write_json";
    if (found != expected) FAIL(found << " but expected " << expected);
  }
}

TEST_CASE("json errors: no damage of a byte leads to anything but a profile or an error") {
  const std::string whole = memprof::to_json(memprof_tests::small_profile()).dump();
  std::mt19937 random{20240601};
  std::size_t read = 0;
  constexpr int rounds = 5000;
  for (int round = 0; round < rounds; ++round) {
    std::string damaged = whole;
    damaged[random() % damaged.size()] = static_cast<char>(random());
    const std::string found = error_in_text(damaged);
    if (found == "no error") {
      ++read;
    } else if (!found.starts_with(start)) {
      FAIL(found);
    }
  }
  CHECK(read > 0);       // a changed digit or letter of a name
  CHECK(read < rounds);  // anything else
}

TEST_CASE("json errors: a deeply nested text neither crashes the reader nor the message") {
  constexpr std::size_t depth = 1'000'000;
  const std::string opened(depth, '[');
  CHECK_THAT(error_in_text(opened), Equals(start + "the document must be an object, not an array"));
}

TEST_CASE("json errors: another format or version is refused with what to do") {
  CHECK_THAT(error_in_text("[]"), Equals(start + "the document must be an object, not an array"));
  CHECK_THAT(error_in_text("{}"),
             Equals(start + "/format is missing: it does not hold a profile; write it again with memprof::write_json"));
  CHECK_THAT(error_in_text(R"({"format": "other"})"),
             Equals(start + R"(/format must be "memprof-profile", not "other" (byte 17))"));
  CHECK_THAT(error_in_text(R"({"format": "memprof-profile"})"), Equals(start + "/version is missing"));
  CHECK_THAT(error_in_text(R"({"format": "memprof-profile", "version": "1"})"),
             StartsWith(start + "/version must be an integer"));
  CHECK_THAT(error_in_text(R"({"format": "memprof-profile", "version": 3})"),
             Equals(start + "/version is 3, and this memprof reads versions 1 to 2: read it with a newer memprof"));
  CHECK_THAT(error_in_text(R"({"format": "memprof-profile", "version": 0})"),
             Equals(start + "/version is 0, and this memprof reads versions 1 to 2: there is no such version"));
}

TEST_CASE("json errors: every key is required but those of later versions, and a missing one is named with its path") {
  const ordered_json whole = memprof::to_json(memprof_tests::filled_profile());
  std::vector<std::string> later;
  memprof::profile_structs{}.each([&]<class T>() {
    for (const std::string_view name : memprof::detail::later_fields<T>) later.emplace_back(name);
  });
  std::size_t checked = 0;
  for (const std::string& pointer : all_pointers(whole)) {
    ordered_json damaged = whole;
    ordered_json& parent = parent_of(damaged, pointer);
    if (!parent.is_object() || pointer.starts_with("/facts/")) continue;  // the keys of tables are not fixed
    const std::string key = pointer.substr(pointer.rfind('/') + 1);
    parent.erase(key);
    INFO(pointer);
    // Structs that are later themselves have all their keys, of whatever name.
    const bool is_of_block = pointer.find("/largest_blocks/") != std::string::npos;
    const bool is_new = pointer.find("/active/") != std::string::npos || pointer.find("/facets/") != std::string::npos ||
                        (pointer.starts_with("/checkpoints/") && !is_of_block);
    const bool is_of_owner = key != "category" || parent.contains("owner");
    const bool may_lack = !is_new && is_of_owner && std::find(later.begin(), later.end(), key) != later.end();
    CHECK_THAT(error_in(damaged), StartsWith(may_lack ? "no error" : start + pointer + " is missing"));
    ++checked;
  }
  CHECK(checked > 100);
}

TEST_CASE("json errors: a value of a wrong type is named with its path and what is expected") {
  const ordered_json whole = memprof::to_json(memprof_tests::filled_profile());
  for (const std::string& pointer : all_pointers(whole)) {
    ordered_json damaged = whole;
    ordered_json& value = damaged[ordered_json::json_pointer{pointer}];
    value = value.is_structured() ? ordered_json("text") : ordered_json::array();
    CHECK_THAT(error_in(damaged), StartsWith(start + pointer + " must be "));
  }

  const auto with = [&](const char* pointer, const ordered_json& value) {
    ordered_json damaged = whole;
    damaged[ordered_json::json_pointer{pointer}] = value;
    return error_in(damaged);
  };
  CHECK_THAT(with("/exact", 1), Equals(start + "/exact must be true or false, not 1"));
  CHECK_THAT(with("/duration_ns", 1.0), Equals(start + "/duration_ns must be an integer from 0 to 2^63-1, not 1.0"));
  CHECK_THAT(with("/duration_ns", true), ContainsSubstring("/duration_ns must be an integer"));
  CHECK_THAT(with("/duration_ns", nullptr), ContainsSubstring("/duration_ns must be an integer"));
  CHECK_THAT(with("/cost/drain_ns_per_event", "1"),
             Equals(start + R"(/cost/drain_ns_per_event must be a number or null, not "1")"));
  CHECK_THAT(with("/spaces/1/segments/0/segment", std::string(1000, 'x')),
             Equals("no error"));  // a long name is a name
  CHECK_THAT(with("/mode", "fast"), Equals(start + R"(/mode must be one of "normal" "no_dispatch", not "fast")"));
  CHECK_THAT(with("/mode", std::string(1000, 'x')), ContainsSubstring("not a long string"));
}

TEST_CASE("json errors: an integer out of range is named with its path") {
  const std::string whole = memprof::to_json(memprof_tests::small_profile()).dump();
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = whole;
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    text.replace(at, from.size(), to);
    return error_in_text(text);
  };
  CHECK_THAT(with("\"duration_ns\":0", "\"duration_ns\":9223372036854775808"),
             Equals(start + "/duration_ns must be an integer from 0 to 2^63-1, not 9223372036854775808 (byte " +
                    std::to_string(whole.find("\"duration_ns\":0") + 32) + ")"));
  CHECK_THAT(with("\"duration_ns\":0", "\"duration_ns\":-9223372036854775809"),
             ContainsSubstring("/duration_ns must be an integer"));
  CHECK_THAT(with("\"address\":4096", "\"address\":18446744073709551616"), ContainsSubstring("/address must be an integer"));
  CHECK_THAT(with("\"address\":4096", "\"address\":-1"),
             StartsWith(start + "/spaces/0/live_at_peak/largest_blocks/0/address must be an integer of at most 64 bits without a "
                                "sign, not -1 (byte "));
}

TEST_CASE("json errors: a negative size, count or time is refused") {
  ordered_json damaged = memprof::to_json(memprof_tests::small_profile());
  const auto with = [&](const char* pointer) {
    ordered_json copy = damaged;
    copy[ordered_json::json_pointer{pointer}] = -1;
    return error_in(copy);
  };
  CHECK_THAT(with("/spaces/0/cumulative_peak"),
             Equals(start + "/spaces/0/cumulative_peak must be an integer from 0 to 2^63-1, not -1"));
  CHECK_THAT(with("/spaces/0/segments/0/segment_peak"), ContainsSubstring("/segment_peak must be an integer from 0"));
  CHECK_THAT(with("/operations/0/invocations"), ContainsSubstring("/operations/0/invocations must be an integer from 0"));
  CHECK(with("/spaces/0/cumulative_current") == "no error");
}

TEST_CASE("json errors: an index that leads nowhere is refused") {
  const ordered_json whole = memprof::to_json(memprof_tests::filled_profile());
  const auto with = [&](const char* pointer, const ordered_json& value) {
    ordered_json damaged = whole;
    damaged[ordered_json::json_pointer{pointer}] = value;
    return error_in(damaged);
  };
  CHECK_THAT(with("/spaces/0/peak_segment", 2),
             Equals(start + "/spaces/0/peak_segment is 2, but must be at least -1 and less than 2"));
  CHECK_THAT(with("/spaces/0/peak_segment", -2), ContainsSubstring("/spaces/0/peak_segment is -2"));
  CHECK_THAT(with("/spaces/0/first_shortfall/segment", 2),
             Equals(start + "/spaces/0/first_shortfall/segment is 2, but must be at least -1 and less than 2"));
  CHECK_THAT(with("/spaces/0/out_of_memory/1/segment", 2),
             Equals(start + "/spaces/0/out_of_memory/1/segment is 2, but must be at least -1 and less than 2"));
  CHECK_THAT(with("/operations/1/parent", 1),
             Equals(start + "/operations/1/parent is 1, but must be at least -1 and less than 1"));
  CHECK_THAT(with("/spaces/1/segments", ordered_json::array()),
             Equals(start + "/spaces/1/segments has 0 elements, but must have one for each of the 2 in /segments"));
  CHECK_THAT(with("/spaces/1/cores/segments", ordered_json::array()),
             Equals(start + "/spaces/1/cores/segments has 0 elements, but must have one for each of the 2 in /segments"));
}

TEST_CASE("json errors: files that cannot be read or written are reported with the reason") {
  CHECK_THAT(error_of([] { (void)memprof::read_json("/nowhere/run.json"); }),
             Equals("cannot read '/nowhere/run.json': No such file or directory"));
  CHECK_THAT(error_of([] { memprof::write_json({}, "/nowhere/run.json"); }),
             Equals("cannot write '/nowhere/run.json': No such file or directory"));
}

}  // namespace memprof_tests::profile_json_errors
