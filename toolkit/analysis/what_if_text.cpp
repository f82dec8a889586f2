#include <memprof/config.hpp>
#include <memprof/report/text/marked_text.hpp>
#include <memprof/report/text/quantity.hpp>
#include <memprof/report/text/section_text.hpp>
#include <memprof/report/text/text_options.hpp>
#include <memprof/toolkit/analysis/answer_text.hpp>
#include <memprof/toolkit/analysis/what_if.hpp>
#include <memprof/toolkit/analysis/what_if_rank.hpp>
#include <memprof/toolkit/analysis/what_if_text.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {
namespace {

constexpr std::size_t most_what_if_owners = 20;

/// "in FORWARD_PASS, 3 of 20, operation forward/block".
void add_place(marked_text& line, const what_if_peak& peak) {
  if (peak.segment.empty()) {
    line.add("after the last segment");
  } else {
    line.add("in ").add_name(peak.segment);
    if (peak.occurrences > 1) line.add(", ").add_count(peak.occurrence).add(" of ").add_count(peak.occurrences);
  }
  if (!peak.operation.empty()) line.add(", operation ").add_name(peak.operation);
  if (peak.is_return) line.add(", whose blocks come back then");
  line.end_line();
}

bool is_same_place(const what_if_peak& left, const what_if_peak& right) {
  return left.segment == right.segment && left.occurrence == right.occurrence && left.operation == right.operation &&
         left.is_return == right.is_return;
}

void add_peak(marked_text& line, const what_if_result& of) {
  line.add_total(of.after.bytes, emphasis::strong).add(" of ").add_name(of.space).add(" instead of ");
  line.add_total(of.before.bytes);
  if (of.saved() == 0) {
    line.add(": nothing is saved", emphasis::caution).end_line();
  } else {
    line.add(": ").add_bytes(std::abs(of.saved()), emphasis::strong).add(of.saved() > 0 ? " less" : " more");
    // A percentage that would round to zero says nothing.
    if (of.before.bytes != 0 && 2000.0 * std::abs(static_cast<double>(of.saved())) >= static_cast<double>(of.before.bytes))
      line.add(" (").add_share(-of.saved(), of.before.bytes).add(")");
    line.end_line();
  }
  if (of.after.bytes == 0) return;
  add_place(line, of.after);
}

/// Where the peak was, if it was elsewhere: what was live there shrank by more than the peak.
void add_moment(marked_text& line, const what_if_result& of) {
  if (of.before.bytes == 0 || of.after.bytes == 0 || is_same_place(of.before, of.after)) return;
  line.add("another peak", emphasis::caution).add(": before, it was ");
  add_place(line, of.before);
}

void add_price(marked_text& line, const what_if_price& price) {
  if (price.recomputed_calls != 0) {
    line.add_bytes(price.recomputed_bytes).add(" in ");
    line.add_count(price.recomputed_allocations, "allocation", "allocations").add(" of ");
    line.add_count(price.recomputed_calls, "call", "calls").add(" that are computed twice").end_line();
  }
  if (price.offloaded_blocks != 0) {
    line.add_bytes(price.offloaded_bytes).add(" in ").add_count(price.offloaded_blocks, "block", "blocks");
    line.add(" are copied out and ").add_bytes(price.fetched_bytes).add(" back; elsewhere, they take up to ");
    line.add_bytes(price.offloaded_peak).end_line();
  }
}

void add_known(marked_text& line, const what_if_result& of) {
  const what_if_price& price = of.price;
  if (of.changed_blocks == 0) {
    line.add("the change affects no block of this memory space", emphasis::caution);
    if (of.is_recomputed)
      line.add("; recomputation is of activations, temporary blocks and those without a category that outlive their call");
    line.end_line();
  }
  if (price.held_bytes != 0) {
    line.add_bytes(price.held_bytes, emphasis::caution).add(" of the new peak are what a recomputed call holds to its end: ");
    line.add("where the program frees it after its last use there, the peak is lower by up to that").end_line();
  }
  if (price.unreturned_blocks != 0) {
    line.add_count(price.unreturned_blocks, "offloaded block is", "offloaded blocks are");
    line.add(" never freed: when ").add(price.unreturned_blocks == 1 ? "it is" : "they are");
    line.add(" used, the trace does not say; with what is copied back then, the peak and the price are higher",
             emphasis::caution);
    line.end_line();
  }
  if (price.unmoved_blocks != 0) {
    line.add_bytes(price.unmoved_bytes).add(" in ").add_count(price.unmoved_blocks, "block", "blocks");
    line.add(" of the offloaded owners ").add(price.unmoved_blocks == 1 ? "stays" : "stay");
    line.add(": never freed and without a category, as the workspace of a library is").end_line();
  }
  if (price.unused_bytes != 0) {
    line.add_bytes(price.unused_bytes, emphasis::caution)
        .add(" of the old peak have no recorded use, and stay as long as they did")
        .end_line();
  }
  if (price.unmatched_uses != 0) {
    line.add_count(price.unmatched_uses, "use names", "uses name");
    line.add(" no live block", emphasis::caution)
        .add(": mark_use takes the begin of a block, and blocks from before the capture ");
    line.add("are unknown; those that are meant may be needed for longer").end_line();
  }
  if (price.untyped_bytes != 0) {
    line.add_bytes(price.untyped_bytes)
        .add(" of these owners at the old peak have no known element type, and stay as they are: ");
    line.add("give it, as in OWNER=fp32:bf16").end_line();
  }
  if (price.retyped_blocks != 0) {
    line.add("kernels for another type may need ")
        .add("other scratch memory", emphasis::caution)
        .add(", which the trace does not have: oneDNN's products of 16-bit numbers need more")
        .end_line();
  }
  if (price.batch_size != 0) {
    line.add("by the shapes, what has a batch of ").add_count(price.batch_size).add(" as its first dimension scales: ");
    line.add_bytes(price.scaled_bytes).add(" of the old peak").end_line();
    if (price.unshaped_bytes != 0) {
      line.add_bytes(price.unshaped_bytes, emphasis::caution).add(" of the old peak have no shape and count as if they did not ");
      line.add("scale; a run with another batch tells (--batch-run)").end_line();
    }
    if (price.inner_batch_bytes != 0) {
      line.add_bytes(price.inner_batch_bytes, emphasis::caution)
          .add(" of the old peak have that in another dimension and count ");
      line.add("as if they did not scale; a run with another batch tells (--batch-run)").end_line();
    }
  } else if (price.batch_ratio != 0) {
    line.add("what differs in the other run, whose batch is ")
        .add(three_digits(price.batch_ratio))
        .add(" times as large, scales: ");
    line.add_bytes(price.scaled_bytes).add(" of the old peak").end_line();
  }
}

void add_reserved(marked_text& line, const what_if_result& of) {
  if (of.reserved_before == 0 && of.reserved_after == 0) return;
  line.add_bytes(of.reserved_after).add(" instead of ").add_bytes(of.reserved_before);
  line.add(", both by the model of PyTorch's caching allocator").end_line();
}

/// Which owners have a row: those with most at either peak, since one that is gone at the new peak is what saved most.
std::vector<bool> shown_of(const std::vector<what_if_owner>& owners, std::size_t most) {
  std::vector<std::size_t> order(owners.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t left, std::size_t right) {
    return std::max(owners[left].before, owners[left].after) > std::max(owners[right].before, owners[right].after);
  });
  std::vector<bool> shown(owners.size());
  for (std::size_t index = 0; index < most; ++index) shown[order[index]] = true;
  return shown;
}

summary_section table_of(const std::vector<what_if_owner>& owners, std::string_view first, bool shows_all) {
  summary_section section;
  section.is_wide = true;
  section.table.has_titles = true;
  section.table.titles = std::string{first} + "\tbefore\tafter\tchange";
  section.table.alignment = "lrrr";
  marked_text& rows = section.table.rows;
  const auto add_cells = [&](std::int64_t before, std::int64_t after) {
    rows.next_cell().add_bytes(before).next_cell().add_bytes(after).next_cell();
    rows.add(signed_short_bytes(after - before), before == after ? emphasis::faint : emphasis::strong).end_line();
  };
  const std::size_t shown = shows_all || owners.size() <= most_what_if_owners + 1 ? owners.size() : most_what_if_owners;
  const std::vector<bool> has_row = shown_of(owners, shown);
  what_if_owner sum;
  what_if_owner others;
  for (std::size_t index = 0; index < owners.size(); ++index) {
    const what_if_owner& owner = owners[index];
    for (what_if_owner* const to : {&sum, &others}) {
      if (to == &others && has_row[index]) continue;
      to->before += owner.before;
      to->after += owner.after;
    }
    if (!has_row[index]) continue;
    rows.add_name(owner.owner);
    add_cells(owner.before, owner.after);
  }
  if (shown < owners.size()) {
    rows.add(grouped(static_cast<std::int64_t>(owners.size() - shown), "other", "others"));
    add_cells(others.before, others.after);
  }
  rows.add("sum", emphasis::strong);
  add_cells(sum.before, sum.after);
  return section;
}

summary_section table_of(const std::vector<ranked_owner>& owners, std::int64_t peak, const char* titles, bool shows_all) {
  summary_section section;
  section.is_wide = true;
  section.table.has_titles = true;
  section.table.set_columns(titles, "lrrrr");
  marked_text& rows = section.table.rows;
  const std::size_t shown = shows_all || owners.size() <= most_what_if_owners + 1 ? owners.size() : most_what_if_owners;
  for (std::size_t index = 0; index < shown; ++index) {
    const ranked_owner& owner = owners[index];
    rows.add_name(owner.owner).next_cell().add_bytes(owner.live).next_cell().add_count(owner.blocks);
    rows.next_cell().add_bytes(owner.peak).next_cell().add_bytes(peak - owner.peak, emphasis::strong).end_line();
  }
  if (shown < owners.size()) {
    const auto others = static_cast<std::int64_t>(owners.size() - shown);
    section.further_lines.add_count(others, "other", "others").add(": --all lists them").end_line();
  }
  return section;
}

template <class Answer>
void add_what_if_accuracy(marked_text& lines, const Answer& of) {
  if (!of.exact) lines.add("not exact", emphasis::caution).add(": lost frees look like blocks that stay").end_line();
  add_remarks(lines, of.remarks);
}

template <class Answer>
void add_accuracy(answer_text& text, const Answer& of) {
  text.add_lines("Accuracy", [&](marked_text& lines) { add_what_if_accuracy(lines, of); });
}

void add_ranking_verdict(marked_text& lines, const owner_ranking& of) {
  lines.add_total(of.peak, emphasis::strong).add(" of ").add_name(of.space).end_line();
}

void add_target_verdict(marked_text& lines, const target_answer& of) {
  lines.add_total(of.target).add(" of ").add_name(of.space).add(": ");
  if (of.owners.empty()) {
    lines.add("the peak is ").add_total(of.peak, emphasis::strong).add(" already").end_line();
    return;
  }
  lines.add_total(of.new_peak, emphasis::strong).add(" instead of ").add_total(of.peak).add(" without ");
  lines.add_count(static_cast<std::int64_t>(of.owners.size()), "owner", "owners");
  lines.add(of.is_smallest ? "; no fewer suffice" : "; fewer may do, the search was given up").end_line();
}

}  // namespace
}  // namespace detail

std::string to_text(const what_if_result& of, const text_options& options, bool shows_all) {
  using namespace detail;
  answer_text text{options, 4};
  text.add_lines("Peak", [&](marked_text& lines) { add_peak(lines, of); });
  text.add_lines("Moment", [&](marked_text& lines) { add_moment(lines, of); });
  text.add_lines("Price", [&](marked_text& lines) { add_price(lines, of.price); });
  text.add_lines("Reserved", [&](marked_text& lines) { add_reserved(lines, of); });
  text.add_lines("Known", [&](marked_text& lines) { add_known(lines, of); });
  add_accuracy(text, of);
  for (const auto& [rows, title] : {std::pair{&of.owners, "Owner"}, std::pair{&of.categories, "Category"}}) {
    if (!rows->empty()) text.add_table(table_of(*rows, title, shows_all));
  }
  return text.take();
}

std::string to_text(const owner_ranking& of, const text_options& options, bool shows_all) {
  using namespace detail;
  answer_text text{options, 4};
  text.add_lines("Peak", [&](marked_text& lines) { add_ranking_verdict(lines, of); });
  add_accuracy(text, of);
  if (!of.owners.empty()) text.add_table(table_of(of.owners, of.peak, "Without\tlive\tblocks\tpeak\tsaved", shows_all));
  return text.take();
}

std::string to_text(const target_answer& of, const text_options& options, bool shows_all) {
  using namespace detail;
  answer_text text{options, 4};
  text.add_lines("Target", [&](marked_text& lines) { add_target_verdict(lines, of); });
  text.add_lines("Least",
                 [&](marked_text& lines) { lines.add_total(of.least).add(" without all that can be removed").end_line(); });
  add_accuracy(text, of);
  if (!of.owners.empty()) text.add_table(table_of(of.owners, of.peak, "Without\tlive\tblocks\tpeak then\tsaved", shows_all));
  return text.take();
}

std::string verdict_of(const what_if_result& of) {
  return detail::plain_line([&](detail::marked_text& lines) { detail::add_peak(lines, of); });
}

std::string verdict_of(const owner_ranking& of) {
  return detail::plain_line([&](detail::marked_text& lines) {
    detail::add_ranking_verdict(lines, of);
    if (of.owners.empty()) return;
    const ranked_owner& first = of.owners.front();
    lines.add("most is saved without ").add_name(first.owner).add(": ").add_total(of.peak - first.peak).end_line();
  });
}

std::string verdict_of(const target_answer& of) {
  return detail::plain_line([&](detail::marked_text& lines) { detail::add_target_verdict(lines, of); });
}

std::vector<std::string> caveats_of(const what_if_result& of) {
  return detail::plain_lines([&](detail::marked_text& lines) {
    detail::add_known(lines, of);
    detail::add_what_if_accuracy(lines, of);
  });
}

std::vector<std::string> caveats_of(const owner_ranking& of) {
  return detail::plain_lines([&](detail::marked_text& lines) { detail::add_what_if_accuracy(lines, of); });
}

std::vector<std::string> caveats_of(const target_answer& of) {
  return detail::plain_lines([&](detail::marked_text& lines) { detail::add_what_if_accuracy(lines, of); });
}

}  // namespace memprof::inline MEMPROF_ABI
