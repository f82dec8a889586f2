#pragma once

#include <memprof/config.hpp>
#include <memprof/detail/nearest_name.hpp>
#include <memprof/detail/saturating.hpp>
#include <memprof/detail/vector.hpp>
#include <memprof/ledger/live_set.hpp>
#include <memprof/profile/operation_profile.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/report/check_limits.hpp>
#include <memprof/report/text/quantity.hpp>
#include <memprof/report/text/text_format.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

/// @file
/// What the checks of `check.hpp` share: how a result is worded, and what a limit is for.

namespace memprof::inline MEMPROF_ABI::detail {

/// Collects the lines of a result.
class check_writer {
 public:
  [[gnu::cold]] explicit check_writer(const profile& source) : source_{source} {}

  [[gnu::cold]] void fail(const std::string& line) {
    passed_ = false;
    add(line);
  }
  [[gnu::cold]] void pass(const std::string& line) { add(line); }
  /// "peak of cpu 96.0 MiB (100,663,296 B) is 32.0 MiB over 64.0 MiB".
  [[gnu::cold]] bool judge(const std::string& what, std::int64_t bytes, std::int64_t at_most, const std::string& owners = {}) {
    const std::int64_t over = subtract_saturating(bytes, at_most);
    const std::string text = what + " " + short_and_exact_bytes(bytes) + " is ";
    if (over <= 0) {
      pass(text + "within " + short_bytes(at_most));
    } else {
      fail(text + short_bytes(over) + " over " + short_bytes(at_most) + owners);
    }
    return over <= 0;
  }
  [[gnu::cold]] void fail_missing(const char* kind, std::string_view name, const vector<std::string_view>& known) {
    fail("there is no " + std::string{kind} + " '" + on_one_line(name) + "'" +
         (known.empty() ? std::string{", nor any other"} : "; the nearest is '" + on_one_line(nearest_name(name, known)) + "'"));
  }

  [[nodiscard, gnu::cold]] check_result result() {
    if (!source_.exact) add("the profile is not exact: the numbers may be too small");
    return {passed_, std::move(message_)};
  }

 private:
  [[gnu::cold]] void add(const std::string& line) {
    if (!message_.empty()) message_ += '\n';
    message_ += line;
  }

  const profile& source_;
  bool passed_ = true;
  std::string message_;
};

/// ": forward/attention holds 80.0 MiB, model holds 16.0 MiB".
[[nodiscard, gnu::cold]] inline std::string largest_owners(const live_set& live) {
  constexpr std::size_t most = 3;
  std::string text;
  for (std::size_t index = 0; index < std::min(most, live.by_operation.size()); ++index) {
    const owned_bytes& owner = live.by_operation[index];
    text += (index == 0 ? ": " : ", ") +
            (owner.owner.empty() ? std::string{"what is outside every operation"} : on_one_line(owner.owner));
    text += " holds " + short_bytes(owner.bytes);
  }
  return text;
}

/// Calls `check(space)` for the spaces that a limit is for; false if it names one that is missing.
template <class Check>
[[gnu::cold]] bool for_each_checked_space(const profile& source, std::string_view name, check_writer& writer, Check&& check) {
  bool is_found = name.empty();
  vector<std::string_view> known;
  for (const space_profile& space : source.spaces) {
    known.push_back(space.name);
    if (!name.empty() && space.name != name) continue;
    is_found = true;
    check(space);
  }
  if (!is_found) writer.fail_missing("memory space", name, known);
  return is_found;
}

[[nodiscard, gnu::cold]] inline bool require_operation(const profile& source, std::string_view path, check_writer& writer) {
  if (source.find_operation(path) != nullptr) return true;
  vector<std::string_view> known;
  for (const operation_profile& operation : source.operations) known.push_back(operation.path);
  writer.fail_missing("operation", path, known);
  return false;
}

/// For profiles without a memory space, whose segments nothing else looks at.
[[nodiscard, gnu::cold]] inline bool require_segment(const profile& source, std::string_view name, check_writer& writer) {
  vector<std::string_view> known;
  for (const segment& each : source.segments) known.push_back(each.name);
  if (name.empty() || std::find(known.begin(), known.end(), name) != known.end()) return true;
  writer.fail_missing("segment", name, known);
  return false;
}

/// Calls `visit(operation, usage)` for what the operation with that path, and those in it, did in a space.
template <class Visit>
[[gnu::cold]] void for_each_usage_within(const profile& source, std::string_view path, std::string_view space, Visit&& visit) {
  vector<bool> is_within(source.operations.size());
  for (std::size_t index = 0; index < source.operations.size(); ++index) {
    const operation_profile& operation = source.operations[index];
    const auto parent = static_cast<std::size_t>(operation.parent);
    is_within[index] = operation.path == path || (operation.parent >= 0 && parent < index && is_within[parent]);
    if (!is_within[index]) continue;
    for (const operation_usage& usage : operation.usage) {
      if (space.empty() || usage.space == space) visit(operation, usage);
    }
  }
}

}  // namespace memprof::inline MEMPROF_ABI::detail
