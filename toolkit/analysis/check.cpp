#include <memprof/config.hpp>
#include <memprof/detail/byte_size.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/detail/nearest_name.hpp>
#include <memprof/detail/parse_double.hpp>
#include <memprof/detail/saturating.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/profile/segments_by_name.hpp>
#include <memprof/report/check.hpp>
#include <memprof/report/text/end_section.hpp>
#include <memprof/report/text/text_format.hpp>
#include <memprof/toolkit/analysis/baseline.hpp>
#include <memprof/toolkit/analysis/check.hpp>
#include <memprof/toolkit/analysis/growth.hpp>
#include <memprof/toolkit/analysis/leaks.hpp>
#include <memprof/toolkit/analysis/profile_remarks.hpp>
#include <memprof/toolkit/analysis/waterfall/operation_part.hpp>
#include <memprof/trace/run_mode.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {
namespace {

constexpr std::size_t most_owners_of_condition = 4;

std::string quoted_for_check(std::string_view name) { return "'" + on_one_line(name) + "'"; }

std::string run_name(const profile& source) {
  return source.provenance.file.empty() ? "the run" : quoted_for_check(source.provenance.file);
}

/// Whether a limit means that name: as it is, as reports show it, or with the slashes of its names as they are.
bool is_name_of(std::string_view given, std::string_view name) {
  return given == name || given == on_one_line(name) || given == without_escapes(name);
}

/// Bytes per step as a whole number; what is less than a byte is not nothing.
std::int64_t whole_bytes_per_step(double per_step) {
  constexpr double most = 0x1p62;
  return static_cast<std::int64_t>(std::ceil(std::clamp(per_step, 0.0, most)));
}

/// Checks one run: adds the conditions, one after the other.
class run_checker {
 public:
  run_checker(const profile& source, const check_request& request, const leak_report* leaks)
      : source_{source}, request_{request}, leaks_{leaks}, run_{baseline_of(source)}, short_{reduced(run_)} {
    report_.file = source.provenance.file;
    report_.baseline_file = request.baseline_file;
    report_.mode = source.mode;
    report_.exact = source.exact;
  }

  [[nodiscard]] check_report check() {
    if (request_.limits.empty() && !request_.growth && request_.baseline == nullptr)
      raise("there is nothing to check: give a limit, or a baseline to compare with");
    if (run_.spaces.empty()) raise(run_name(source_) + " has no memory space: nothing was recorded");
    if (!request_.space.empty()) require_space(request_.space);
    add_caveats();
    for (const check_limit& limit : request_.limits) add_limit(limit);
    if (request_.baseline != nullptr) add_comparison(*request_.baseline);
    if (request_.growth) add_growth(*request_.growth);
    return std::move(report_);
  }

 private:
  [[nodiscard]] bool counts(std::string_view space) const { return request_.space.empty() || request_.space == space; }

  void add_caveats() {
    std::vector<const space_profile*> spaces;
    for (const space_profile& space : source_.spaces) {
      if (counts(space.name)) spaces.push_back(&space);
    }
    report_.caveats = remarks_on(source_, spaces);
  }

  // --- names ------------------------------------------------------------------------------------------------------------

  [[noreturn]] void raise_missing(std::string_view kind, std::string_view name, const std::set<std::string>& known) const {
    std::string text = "no " + std::string{kind} + " " + quoted_for_check(name) + " in " + run_name(source_);
    if (!request_.space.empty() && kind != "memory space") text += " in " + request_.space;
    if (known.empty()) raise(text + ", which has none");
    std::vector<std::string_view> names{known.begin(), known.end()};
    raise(text + "; the nearest is " + quoted_for_check(nearest_name(name, names)));
  }

  void require_space(std::string_view name) const {
    if (run_.find_space(name) != nullptr) return;
    std::set<std::string> known;
    for (const baseline_space& space : run_.spaces) known.insert(space.space);
    raise_missing("memory space", name, known);
  }

  /// The names of the operations on the way to the one with that path.
  [[nodiscard]] const std::vector<std::string>& names_of(const std::string& path) {
    if (names_.empty()) {
      for (const operation_profile& operation : source_.operations) {
        std::vector<std::string>& names = names_[operation.path];
        const auto parent = static_cast<std::size_t>(operation.parent);
        if (operation.parent >= 0 && parent < source_.operations.size()) names = names_[source_.operations[parent].path];
        names.push_back(operation.name);
      }
    }
    return names_[path];
  }

  // --- limits -----------------------------------------------------------------------------------------------------------

  void add_limit(const check_limit& limit) {
    const std::size_t before = report_.conditions.size();
    for (const bool by_pattern : {false, true}) {
      if (by_pattern && limit.name.find('*') == std::string::npos) break;
      for (const baseline_space& space : run_.spaces) {
        if (counts(space.space)) add_limit(limit, space, by_pattern);
      }
      if (report_.conditions.size() != before) return;
    }
    raise_missing_of(limit);
  }

  void add_limit(const check_limit& limit, const baseline_space& space, bool by_pattern) {
    switch (limit.subject) {
      case check_subject::space:
        if (limit.name.empty() || (by_pattern ? matches_glob(limit.name, space.space) : is_name_of(limit.name, space.space)))
          add(limit, space, {}, space.peak_bytes);
        return;
      case check_subject::segment:
        for (const baseline_segment& segment : space.segments) {
          if (by_pattern ? matches_glob(limit.name, segment.segment) : is_name_of(limit.name, segment.segment))
            add(limit, space, segment.segment, segment.peak_bytes);
        }
        return;
      case check_subject::operation:
        for (const baseline_operation& operation : space.operations) {
          if (operation.operation.empty()) continue;
          if (by_pattern ? matches_path(limit.name, names_of(operation.operation)) : is_name_of(limit.name, operation.operation))
            add(limit, space, operation.operation, operation.peak_bytes);
        }
    }
  }

  [[noreturn]] void raise_missing_of(const check_limit& limit) const {
    std::set<std::string> known;
    for (const baseline_space& space : run_.spaces) {
      if (!counts(space.space)) continue;
      switch (limit.subject) {
        case check_subject::space: known.insert(space.space); break;
        case check_subject::segment:
          for (const baseline_segment& segment : space.segments) known.insert(segment.segment);
          break;
        case check_subject::operation:
          for (const baseline_operation& operation : space.operations) {
            if (!operation.operation.empty()) known.insert(operation.operation);
          }
      }
    }
    const bool is_space = limit.subject == check_subject::space;
    if (is_space && run_.find_space(limit.name) != nullptr)
      raise("a limit for memory space " + quoted_for_check(limit.name) + ", and only " + quoted_for_check(request_.space) +
            " is to be checked (--space)");
    raise_missing(is_space ? std::string_view{"memory space"} : to_string(limit.subject), limit.name, known);
  }

  check_condition& add(const check_limit& limit, const baseline_space& space, const std::string& name, std::int64_t bytes) {
    check_condition& made = report_.conditions.emplace_back();
    made.subject = limit.subject;
    made.space = space.space;
    made.name = name;
    made.bytes = bytes;
    made.at_most = limit.at_most;
    made.file = limit.file;
    made.line = limit.line;
    if (!made.has_passed()) find_owners(made, space);
    return made;
  }

  // --- owners -----------------------------------------------------------------------------------------------------------

  void find_owners(check_condition& of, const baseline_space& space) const {
    if (of.subject == check_subject::segment) return find_owners_in_segment(of, space);
    if (of.subject == check_subject::operation) return;
    const baseline_space* const before = request_.baseline == nullptr ? nullptr : request_.baseline->find_space(space.space);
    if (before != nullptr && before->peak_bytes < space.peak_bytes && take_changes(of, growth_since(*before, space))) return;
    const baseline_space* const rows = short_.find_space(space.space);
    for (const baseline_operation& row : rows->operations) {
      if (of.owners.size() == most_owners_of_condition || row.held_bytes <= 0) break;
      of.owners.push_back({row.operation, row.operations, row.all_held(), 0});
    }
  }

  /// Takes those that grew; false if none did.
  static bool take_changes(check_condition& of, const std::vector<baseline_difference>& owners) {
    for (const baseline_difference& owner : owners) {
      if (of.owners.size() == most_owners_of_condition || owner.change() <= 0) break;
      of.owners.push_back({owner.operation, owner.operations, owner.after, owner.change()});
    }
    of.owners_are_changes = !of.owners.empty();
    return of.owners_are_changes;
  }

  static const baseline_segment* find_segment(const baseline_space* in, const std::string& name) {
    if (in == nullptr) return nullptr;
    const auto is_it = [&](const baseline_segment& segment) { return segment.segment == name; };
    const auto found = std::find_if(in->segments.begin(), in->segments.end(), is_it);
    return found == in->segments.end() ? nullptr : &*found;
  }

  void find_owners_in_segment(check_condition& of, const baseline_space& space) const {
    const baseline_segment* const after = find_segment(&space, of.name);
    if (after == nullptr) return;
    const baseline_segment* const before =
        request_.baseline == nullptr ? nullptr : find_segment(request_.baseline->find_space(space.space), of.name);
    if (before != nullptr && !before->owners.empty() && before->peak_bytes < after->peak_bytes &&
        take_changes(of, growth_since(*before, *after)))
      return;
    for (const baseline_owner& owner : after->owners) {
      if (of.owners.size() == most_owners_of_condition || owner.held_bytes <= 0) return;
      of.owners.push_back({owner.operation, owner.operations, owner.held_bytes, 0});
    }
  }

  // --- growth -----------------------------------------------------------------------------------------------------------

  void add_growth(const check_limit& limit) {
    if (leaks_ != nullptr && (leaks_->is_by_count || !leaks_->is_long_enough())) {
      raise(leaks_->is_by_count ? "growth cannot be judged: no segment's name repeats; end each step with a segment, such as "
                                  "snapshot(\"STEP\")"
                                : too_few(leaks_->steps));
    }
    for (const space_profile& space : source_.spaces) {
      if (!counts(space.name)) continue;
      check_condition made;
      made.reason = check_reason::growth;
      made.space = space.name;
      made.at_most = limit.at_most;
      made.file = limit.file;
      made.line = limit.line;
      if (leaks_ != nullptr) {
        take_growth_of_trace(made, *leaks_);
      } else {
        take_growth_of_profile(made, space);
      }
      made.bytes = whole_bytes_per_step(made.per_step);
      report_.conditions.push_back(std::move(made));
    }
  }

  static std::string too_few(std::int64_t steps) {
    return "growth cannot be judged: at least " + std::to_string(growth_series::least_steps) + " steps are needed, and there " +
           (steps == 1 ? "is " : "are ") + grouped(steps);
  }

  static void add_growing_owner(check_condition& to, const std::string& operation, std::int64_t operations, double per_step,
                                std::int64_t since_step) {
    if (to.owners.empty()) to.since_step = std::max<std::int64_t>(0, since_step);
    if (to.owners.size() == most_owners_of_condition) return;
    const std::int64_t bytes = whole_bytes_per_step(per_step);
    to.owners.push_back({operation, operations, bytes, bytes, per_step});
  }

  /// The owners grow and the space does not.
  void forgive(check_condition& made) {
    const std::string& who = made.owners.front().operation;
    report_.caveats.push_back(on_one_line(who.empty() ? outside_every_operation : std::string_view{who}) + " grows by " +
                              growth_rate(made.owners.front().per_step) + " per step in " + on_one_line(made.space) +
                              ", and as much or more of other memory is freed");
    made.per_step = 0;
    made.since_step = 0;
    made.owners.clear();
  }

  void take_growth_of_trace(check_condition& made, const leak_report& leaks) {
    for (const growing_owner& owner : leaks.growing) {
      if (owner.space == made.space)
        add_growing_owner(made, owner.operation, owner.operations, owner.trend.per_step, owner.trend.since_step);
    }
    for (const leak_report::space_row& space : leaks.spaces) {
      if (space.name != made.space) continue;
      made.per_step = space.per_step;
      if (space.is_made_up_for) forgive(made);
    }
    for (const growing_owner& owner : leaks.unclear) {
      if (owner.space != made.space) continue;
      add_unclear(owner.operation.empty() ? outside_every_operation : std::string_view{owner.operation}, owner.space);
      return;
    }
  }

  void add_unclear(std::string_view who, std::string_view space) {
    report_.caveats.push_back(on_one_line(who) + " grew until the end in " + on_one_line(space) +
                              ", but too few times for a verdict: a longer run would tell");
  }

  void take_growth_of_profile(check_condition& made, const space_profile& space) {
    const vector<segments_of_name> names = segments_by_name(source_, space);
    const segments_of_name* const name = end_of_step(names);
    for (const owner_growth& owner : space.growing) add_growing_owner(made, owner.owner, 1, owner.per_step, owner.since_step);
    made.per_step = growth_of_owners(space);
    if (!space.growing.empty()) {
      if (name != nullptr && stays_or_falls(is_constant(*name), name->growth)) forgive(made);
      return;
    }
    if (name == nullptr || name->count < growth_series::least_steps) {
      raise(name == nullptr ? "growth of " + on_one_line(space.name) + " cannot be judged: no segment's name repeats three times"
                            : too_few(name->count));
    }
    made.per_step = growth_without_owner(source_, space, *name);
    if (made.per_step == 0 && grows(*name)) {
      report_.caveats.push_back(
          "what is live in " + on_one_line(space.name) + " grew by " + growth_rate(name->growth.per_step) +
          " per step on average, though no operation grows for certain: memprof leaks says more of a trace");
    }
  }

  // --- the baseline -----------------------------------------------------------------------------------------------------

  void add_comparison(const run_baseline& baseline) {
    const std::string named = baseline_name();
    if (!request_.space.empty() && baseline.find_space(request_.space) == nullptr)
      raise(named + " has no memory space " + quoted_for_check(request_.space) + "; it has " + spaces_of(baseline));
    const auto is_common = [&](const baseline_space& space) { return baseline.find_space(space.space) != nullptr; };
    if (std::none_of(run_.spaces.begin(), run_.spaces.end(), is_common)) {
      raise("run and baseline cannot be compared: " + run_name(source_) + " has " + spaces_of(run_) + ", and " + named + " has " +
            (baseline.spaces.empty() ? "no memory space" : spaces_of(baseline)));
    }
    if (!request_.any_program && seem_different_programs(run_, baseline)) {
      raise("run and baseline seem to be of different programs: " + run_name(source_) + " and " + named + " " +
            why_different(run_, baseline) + "; --any-program compares them all the same, and --write-baseline makes a new one");
    }
    if (!baseline.exact) report_.caveats.push_back(named + " is not exact: its bytes may be too small");
    if (baseline.mode != source_.mode) {
      report_.caveats.push_back("the run's mode is " + std::string{to_string(source_.mode)} + ", that of " + named + " " +
                                std::string{to_string(baseline.mode)});
    }
    if (baseline.device != source_.device && !baseline.device.empty() && !source_.device.empty()) {
      const std::string devices = "the run's device is " + quoted_for_check(source_.device) + ", that of " + named + " " +
                                  quoted_for_check(baseline.device);
      if (request_.space.empty())
        raise(devices + "; --space NAME compares one memory space of both, and --write-baseline makes a new one");
      report_.caveats.push_back(devices);
    }
    for (const baseline_space& space : baseline.spaces) {
      if (counts(space.space) && run_.find_space(space.space) == nullptr)
        report_.caveats.push_back("the run has no memory space " + quoted_for_check(space.space) + ", which " + named + " has");
    }
    std::set<check_subject> done;
    for (const check_subject subject : request_.each) {
      if (done.insert(subject).second) add_comparison(baseline, subject);
    }
  }

  [[nodiscard]] std::string baseline_name() const {
    return request_.baseline_file.empty() ? "the baseline" : quoted_for_check(request_.baseline_file);
  }

  static std::string spaces_of(const run_baseline& of) {
    std::string text;
    for (const baseline_space& space : of.spaces) text += (text.empty() ? "" : ", ") + on_one_line(space.space);
    return text;
  }

  void add_comparison(const run_baseline& baseline, check_subject subject) {
    std::vector<std::string> unknown;
    for (const baseline_space& space : run_.spaces) {
      if (!counts(space.space)) continue;
      const baseline_space* const before = baseline.find_space(space.space);
      switch (subject) {
        case check_subject::space:
          compare(subject, space, {}, space.peak_bytes, before == nullptr ? 0 : before->peak_bytes);
          break;
        case check_subject::segment:
          if (before != nullptr) compare_segments(space, *before, unknown);
          break;
        case check_subject::operation:
          if (before != nullptr) compare_operations(space, *before, unknown);
      }
    }
    if (unknown.empty()) return;
    constexpr std::size_t most = 3;
    std::string text = "not compared, since " + baseline_name() + " lacks them: " + std::to_string(unknown.size()) + " " +
                       std::string{to_string(subject)} + (unknown.size() == 1 ? "" : "s");
    for (std::size_t index = 0; index < std::min(most, unknown.size()); ++index)
      text += (index == 0 ? ", " : " and ") + quoted_for_check(unknown[index]);
    if (unknown.size() > most) text += " and others";
    report_.caveats.push_back(std::move(text));
  }

  void compare(check_subject subject, const baseline_space& space, const std::string& name, std::int64_t bytes,
               std::int64_t before) {
    check_condition& made =
        add({subject, name, request_.tolerance.greatest(before), request_.baseline_file, 0}, space, name, bytes);
    made.reason = check_reason::baseline;
    made.before = before;
  }

  void compare_segments(const baseline_space& space, const baseline_space& before, std::vector<std::string>& unknown) {
    for (const baseline_segment& segment : space.segments) {
      const auto is_it = [&](const baseline_segment& other) { return other.segment == segment.segment; };
      const auto found = std::find_if(before.segments.begin(), before.segments.end(), is_it);
      if (found == before.segments.end()) {
        unknown.push_back(segment.segment);
      } else {
        compare(check_subject::segment, space, segment.segment, segment.peak_bytes, found->peak_bytes);
      }
    }
  }

  /// Equal layers are one row of the baseline, which does not say which they are: the layers of a family are compared in the
  /// order of their peaks, and the one that exceeds its limit most is the condition.
  void compare_operations(const baseline_space& space, const baseline_space& before, std::vector<std::string>& unknown) {
    std::unordered_map<std::string_view, std::int64_t> single;
    std::map<std::string, std::vector<const baseline_operation*>> groups;
    for (const baseline_operation& row : before.operations) {
      if (row.operations == 1) {
        single[row.operation] = row.peak_bytes;
      } else {
        groups[row.operation].push_back(&row);
      }
    }
    std::map<std::string, std::vector<const baseline_operation*>> layers;
    for (const baseline_operation& operation : space.operations) {
      if (operation.operation.empty()) continue;
      if (const auto found = single.find(operation.operation); found != single.end()) {
        compare(check_subject::operation, space, operation.operation, operation.peak_bytes, found->second);
        continue;
      }
      const std::string family = with_folded_layers(operation.operation);
      if (groups.contains(family)) {
        layers[family].push_back(&operation);
      } else {
        unknown.push_back(operation.operation);
      }
    }
    for (auto& [family, own] : layers) compare_layers(space, own, groups[family]);
  }

  void compare_layers(const baseline_space& space, std::vector<const baseline_operation*>& layers,
                      std::vector<const baseline_operation*>& groups) {
    for (std::vector<const baseline_operation*>* const each : {&layers, &groups}) {
      std::stable_sort(each->begin(), each->end(), [](const baseline_operation* left, const baseline_operation* right) {
        return left->peak_bytes > right->peak_bytes;
      });
    }
    const baseline_operation* worst = nullptr;
    std::int64_t worst_before = 0;
    std::int64_t worst_excess = 0;
    std::size_t group = 0;
    std::int64_t of_group = 0;
    for (const baseline_operation* const layer : layers) {
      // Layers that are new are compared with the smallest.
      if (of_group == groups[group]->operations && group + 1 < groups.size()) {
        ++group;
        of_group = 0;
      }
      ++of_group;
      const std::int64_t known = groups[group]->peak_bytes;
      const std::int64_t excess = subtract_saturating(layer->peak_bytes, request_.tolerance.greatest(known));
      if (worst != nullptr && excess <= worst_excess) continue;
      worst = layer;
      worst_before = known;
      worst_excess = excess;
    }
    compare(check_subject::operation, space, worst->operation, worst->peak_bytes, worst_before);
  }

  const profile& source_;
  const check_request& request_;
  const leak_report* leaks_;
  run_baseline run_;
  run_baseline short_;
  std::unordered_map<std::string, std::vector<std::string>> names_;
  check_report report_;
};

}  // namespace
}  // namespace detail

std::int64_t check_tolerance::greatest(std::int64_t before) const noexcept {
  const long double share = static_cast<long double>(before) * static_cast<long double>(percent) / 100.0L;
  constexpr long double most = 0x1p62L;
  constexpr long double rounding = 1e-6L;  // 0.3 % of 1,000 is 3, although no number of the machine is 0.3
  const auto of_percent = static_cast<std::int64_t>(std::clamp(share + rounding, 0.0L, most));
  return detail::add_saturating(before, std::max(bytes, of_percent));
}

check_tolerance parse_tolerance(std::string_view text) {
  if (!text.ends_with('%')) {
    if (const auto bytes = detail::whole_bytes(text)) return {.bytes = *bytes};
    if (const auto bytes = detail::scaled_bytes(text)) return {.bytes = *bytes};
  } else {
    std::string_view number = text.substr(0, text.size() - 1);
    while (number.ends_with(' ')) number.remove_suffix(1);
    double percent = 0;
    const auto [end, fault] = detail::parse_double(number, percent);
    if (fault == std::errc{} && end == number.data() + number.size() && percent >= 0 && percent <= 1e6)
      return {.percent = percent};
  }
  const std::string remedy = detail::unit_remedy(text);
  detail::raise("'" + std::string{text} +
                "' is no tolerance: " + (remedy.empty() ? "write a share such as 1%, or bytes such as 0 or 16MiB" : remedy));
}

std::size_t check_report::failures() const noexcept {
  return static_cast<std::size_t>(
      std::count_if(conditions.begin(), conditions.end(), [](const check_condition& each) { return !each.has_passed(); }));
}

check_report check_run(const profile& source, const check_request& request, const leak_report* leaks) {
  return detail::run_checker{source, request, leaks}.check();
}

}  // namespace memprof::inline MEMPROF_ABI
