#include <memprof/config.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/detail/heap.hpp>
#include <memprof/ledger/allocator_event.hpp>
#include <memprof/ledger/live_blocks.hpp>
#include <memprof/ledger/operation_tree.hpp>
#include <memprof/ledger/operation_visitor.hpp>
#include <memprof/ledger/saved_state/threads.hpp>
#include <memprof/ledger/saved_state/values.hpp>
#include <memprof/toolkit/analysis/allocation_sequence.hpp>
#include <memprof/trace/definitions.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/saved_state_collector.hpp>
#include <memprof/trace/state_bytes.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace {

constexpr auto no_usage = [](std::uint32_t, const detail::open_scope&, std::uint8_t, const detail::scope_usage&) {};

}  // namespace

void allocation_sequence::name(extend::label id, std::string_view text) noexcept {
  if (id == names_.size() + 1) names_.append(text);
}

void allocation_sequence::space(const extend::space_definition& space) noexcept {
  if (!space_name_.empty() && names_.text(space.name) == space_name_) space_ = space.id;
}

void allocation_sequence::events(const extend::event* first, const extend::event* last, std::uint32_t ring) {
  detail::thread_scopes& on = thread_in(ring);
  for (const extend::event* next = first; next != last; ++next, ++events_) {
    switch (next->kind) {
      case extend::event_kind::allocate:
      case extend::event_kind::allocate_on_stream:
        if (next->space == space_) allocate(*next, on);
        break;
      case extend::event_kind::deallocate:
        if (next->space == space_) deallocate(next->address, on);
        break;
      case extend::event_kind::deallocate_on_stream:
        if (next->space != space_) break;
        next->tag == 0 ? deallocate(next->address, on) : request_deallocation(next->address, on);
        break;
      case extend::event_kind::complete_deallocation:
        if (next->space == space_) complete_deallocation(next->address, operation_of(on));
        break;
      case extend::event_kind::deallocate_range:
        if (next->space == space_) deallocate_range(*next, on);
        break;
      case extend::event_kind::release:
        if (next->space == space_ && next->tag == 1) empty_cache(*next);
        break;
      case extend::event_kind::scope_begin:
        (void)visitor_.begin(on, *next, 0, no_usage, [this](std::uint32_t number) { return thread_of_number(number); });
        break;
      case extend::event_kind::scope_end:
        visitor_.end(on, *next, no_usage, [this](std::uint32_t number) { return thread_of_number(number); });
        break;
      case extend::event_kind::gap: is_missing_events_ = true; break;
      case extend::event_kind::thread_begin: visitor_.begin_thread(on, *next, detail::block::max_thread, no_usage); break;
      default: break;  // memory of single cores has no caching allocator
    }
  }
}

bool allocation_sequence::saved_state(const detail::saved_state_part& part) {
  if ((!is_missing_events_ && events_ != 0) || !saved_state_.add(part)) return true;
  const bool is_sound = take_saved_state();
  saved_state_.clear();
  return is_sound;
}

detail::thread_scopes& allocation_sequence::thread_in(std::uint32_t ring) {
  std::unique_ptr<detail::thread_scopes>& thread = threads_[ring];
  if (thread == nullptr) thread = std::make_unique<detail::thread_scopes>(ring);
  return *thread;
}

detail::thread_scopes* allocation_sequence::thread_of_number(std::uint32_t number) {
  for (const auto& [ring, thread] : threads_) {
    if (thread->thread == number) return thread.get();
  }
  return nullptr;
}

bool allocation_sequence::take_saved_state() {
  using detail::state_section;
  detail::state_reader in{saved_state_.data(), saved_state_.size()};
  std::uint32_t revision = 0;
  in.number(revision);
  if (revision > detail::state_revision) return true;
  visitor_ = detail::operation_visitor{};
  threads_.clear();
  in.section(state_section::operations, [&] { detail::saved_threads::operations(in, visitor_); });
  detail::live_blocks found;
  while (!in.is_at_end() && !in.has_failed()) {
    switch (in.next_section()) {
      case state_section::blocks: in.section(state_section::blocks, [&] { take_blocks(in, found); }); break;
      case state_section::threads: in.section(state_section::threads, [&] { take_threads(in); }); break;
      case state_section::adoptions: in.section(state_section::adoptions, [&] { take_adoptions(in); }); break;
      default: in.skip_section(); break;
    }
  }
  if (in.has_failed()) return false;
  go_on_with(found);
  is_missing_events_ = false;
  return true;
}

void allocation_sequence::take_blocks(detail::state_reader& in, detail::live_blocks& found) {
  std::uint8_t space = 0;
  in.number(space);
  std::uint64_t born = 0;
  detail::live_blocks of_others;
  detail::saved_values::table_of_blocks(in, space == space_ ? found : of_others, [&](detail::block& held) {
    std::int64_t distance = 0;
    std::uint32_t thread = 0;
    std::uint32_t node = 0;
    std::uint32_t category = 0;
    extend::label annotation = 0;
    in.amounts(held.bytes);
    in.numbers(distance, thread, node, category, annotation);
    in.require(node < visitor_.operations().size());
    held.born_thread = born += static_cast<std::uint64_t>(distance);
    held.owner = node;
  });
}

void allocation_sequence::take_threads(detail::state_reader& in) {
  std::size_t count = 0;
  in.number(count);
  for (; count != 0 && !in.has_failed(); --count) {
    std::uint32_t ring = 0;
    in.number(ring);
    if (in.has_failed()) return;
    detail::thread_scopes& on = thread_in(ring);
    in.require(on.scopes.empty());
    in.numbers(on.thread, on.unfollowed_scopes);
    detail::saved_threads::open_operations(in, on.scopes, visitor_.operations().size());
  }
}

void allocation_sequence::take_adoptions(detail::state_reader& in) {
  detail::saved_threads::adoptions(in, visitor_, 0, [this](std::uint32_t ring) {
    const auto found = threads_.find(ring);
    return found == threads_.end() ? nullptr : found->second.get();
  });
}

void allocation_sequence::go_on_with(detail::live_blocks& found) {
  std::vector<detail::block> gone;
  live_.for_each([&](const detail::block& held) {
    const detail::live_blocks::place now = found.find(held.address);
    if (!now || now->bytes != held.bytes) gone.push_back(held);
  });
  for (const detail::block& held : gone) {
    free_block(held.owner, 0);
    live_.erase(live_.find(held.address));
  }
  std::vector<detail::block> come;
  found.for_each([&](const detail::block& held) {
    if (!live_.find(held.address)) come.push_back(held);
  });
  detail::sort_rows(come.data(), come.size(), [](const detail::block& left, const detail::block& right) {
    return left.born_thread != right.born_thread ? left.born_thread < right.born_thread : left.address < right.address;
  });
  for (const detail::block& held : come) {
    const detail::live_blocks::insertion made = live_.insert(held.address);
    if (made.entry == nullptr) detail::raise("allocation_sequence: out of memory for the table of live blocks");
    made.entry->bytes = held.bytes;
    made.entry->owner = held.bytes == 0 ? no_block : number_of_new_block();
    if (held.bytes != 0) add_step(step_kind::allocate, made.entry->owner, held.operation(), held.bytes);
  }
}

void allocation_sequence::allocate(const extend::event& recorded, const detail::thread_scopes& on) {
  complete_deallocation(recorded.address, operation_of(on));  // or the address could not be given again
  const detail::live_blocks::insertion made = live_.insert(recorded.address);
  if (made.entry == nullptr) detail::raise("allocation_sequence: out of memory for the table of live blocks");
  std::uint64_t& block = made.entry->owner;
  if (!made.is_new) {
    ++replaced_allocations_;
    free_block(block, operation_of(on));
  }
  made.entry->bytes = recorded.bytes;
  block = recorded.bytes == 0 ? no_block : number_of_new_block();
  if (block == no_block) return;
  const extend::label stream = recorded.kind == extend::event_kind::allocate_on_stream ? recorded.label : 0;
  add_step(step_kind::allocate, block, operation_of(on), recorded.bytes, stream_of(stream));
}

void allocation_sequence::deallocate(std::uint64_t address, const detail::thread_scopes& on) {
  const detail::live_blocks::place found = live_.find(address);
  if (!found) {
    ++unmatched_frees_;
    return;
  }
  free_block(found->owner, operation_of(on));
  live_.erase(found);
}

void allocation_sequence::request_deallocation(std::uint64_t address, const detail::thread_scopes& on) {
  const detail::live_blocks::place found = live_.find(address);
  if (!found || found->owner == no_block) return deallocate(address, on);
  const auto block = static_cast<std::uint32_t>(found->owner);
  complete_deallocation(address, operation_of(on));
  add_step(step_kind::request_deallocation, block, operation_of(on));
  awaited_.emplace(address, block);
  live_.erase(found);
}

void allocation_sequence::complete_deallocation(std::uint64_t address, std::uint32_t operation) {
  if (awaited_.empty()) return;
  const auto found = awaited_.find(address);
  if (found == awaited_.end()) return;
  const std::uint32_t block = found->second;
  awaited_.erase(found);
  unused_.push_back(block);
  if (steps_.back().kind == step_kind::request_deallocation && steps_.back().block == block) {
    steps_.back().kind = step_kind::deallocate;  // as nearly always: no other stream used it
  } else {
    add_step(step_kind::complete_deallocation, block, operation);
  }
}

void allocation_sequence::deallocate_range(const extend::event& recorded, const detail::thread_scopes& on) {
  std::vector<std::uint64_t> addresses;
  live_.for_each([&](const detail::block& live) {
    if (detail::is_in_range(recorded, live.address)) addresses.push_back(live.address);
  });
  std::sort(addresses.begin(), addresses.end());
  for (const std::uint64_t address : addresses) deallocate(address, on);
}

void allocation_sequence::free_block(std::uint64_t block, std::uint32_t operation) {
  if (block == no_block) return;
  add_step(step_kind::deallocate, block, operation);
  unused_.push_back(static_cast<std::uint32_t>(block));
}

void allocation_sequence::empty_cache(const extend::event& recorded) {
  const std::uint16_t stream = stream_of(recorded.label);
  const bool is_said = !steps_.empty() && steps_.back().kind == step_kind::empty_cache && steps_.back().stream == stream;
  if (!is_said) add_step(step_kind::empty_cache, 0, 0, 0, stream);
}

std::uint32_t allocation_sequence::number_of_new_block() {
  if (unused_.empty()) return block_count_++;
  const std::uint32_t number = unused_.back();
  unused_.pop_back();
  return number;
}

std::uint16_t allocation_sequence::stream_of(extend::label name) {
  if (streams_[last_stream_] == name) return last_stream_;
  constexpr std::size_t most = std::size_t{1} << 16;
  auto found = std::find(streams_.begin(), streams_.end(), name);
  if (found == streams_.end()) {
    if (streams_.size() == most) return 0;
    found = streams_.insert(streams_.end(), name);
  }
  return last_stream_ = static_cast<std::uint16_t>(found - streams_.begin());
}

void allocation_sequence::add_step(step_kind kind, std::uint64_t block, std::uint32_t operation, std::uint64_t bytes,
                                   std::uint16_t stream) {
  allocation_step& step = steps_.emplace_back();
  step.bytes = bytes;
  step.event = events_ & ((std::uint64_t{1} << 45) - 1);
  step.stream = stream;
  step.kind = kind;
  step.block = static_cast<std::uint32_t>(block);
  step.operation = operation;
}

}  // namespace memprof::inline MEMPROF_ABI
