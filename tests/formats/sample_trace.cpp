// Writes a trace with everything that formats have to cope with: `sample_trace OUT.memtrace [EVENTS [SEED]]`.
#include <memprof/trace/core_range.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/trace.hpp>
#include <memprof/trace/trace_file.hpp>
#include <memprof/trace/trace_writer.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <random>
#include <string>
#include <vector>

namespace {

using memprof::category;
using memprof::extend::event_kind;

struct live_block {
  memprof::extend::space_id space;
  std::uint64_t address;
  std::uint64_t bytes;
  memprof::extend::label stream;
};

/// Two devices and the heap, each with an address that only grows, so that no block overlaps another.
class sample {
 public:
  sample(memprof::trace& target, std::uint64_t seed)
      : writer_(target, info()), random_(seed), spaces_{writer_.space("cpu"), writer_.space("cuda:1"), writer_.space("dram")} {
    streams_ = {writer_.label_of("default\x1f"), writer_.label_of("0x55d0c0a1b2c0\x1f"
                                                                  "0:1")};
  }

  void write(std::uint64_t events) {
    writer_.on_thread(1, "main", 4711);
    // Reserved like a caching allocator: one segment that all blocks of cuda:1 fit into.
    put(event_kind::reserve, spaces_[1], next_[1], std::uint64_t{1} << 40, 0);
    for (std::uint64_t number = 0; number < events; ++number) {
      now_ += 250 + static_cast<std::int64_t>(pick(1000));
      writer_.at(now_);
      if (events > 100 && number % (events / 4) == events / 4 - 1) writer_.end_segment("STEP \"" + std::to_string(number) + "\"");
      switch (pick(8)) {
        case 0:
          open_.push_back(writer_.begin_operation(name(), pick(3) == 0 ? category::activation : memprof::optional_category{}));
          break;
        case 1:
          if (open_.empty()) break;
          writer_.end_operation(open_.back());
          open_.pop_back();
          break;
        case 2:
        case 3:
        case 4: allocate(); break;
        case 5:
        case 6: free_one(); break;
        default: rare();
      }
      if (open_.size() > 12) {
        writer_.end_operation(open_.front());  // ends before those within it
        open_.erase(open_.begin());
      }
    }
    writer_.finish();
  }

 private:
  static memprof::extend::capture_info info() {
    memprof::extend::capture_info made;
    made.library_version = "test";
    made.begin_unix_ns = 1'700'000'000'000'000'000;
    made.process.id = 4711;
    made.process.command_line = "train --name \"a;b\"";
    made.process.rank = 3;
    return made;
  }
  std::uint64_t pick(std::uint64_t below) { return random_() % below; }
  std::string name() {
    // Separators of every format, control characters, what is no UTF-8, an empty name, and one that looks like a number.
    static const std::vector<std::string> names{
        "forward",        "back;ward", "a/b",     "quo\"te\\",   "tab\there",           "new\nline",
        "\xff\xfe bytes", "",          "layer 3", "Σ-reduction", "matmul (gemm.cpp:42)"};
    return names[pick(names.size())];
  }
  void put(event_kind kind, memprof::extend::space_id space, std::uint64_t address, std::uint64_t bytes,
           memprof::extend::label label) {
    writer_.put_event({0, address, bytes, label, kind, space.value, 0});
  }

  void allocate() {
    const std::size_t space = pick(spaces_.size());
    const std::uint64_t bytes = 1 + pick(100'000);
    const live_block made{spaces_[space], next_[space], bytes, space == 1 ? streams_[pick(2)] : 0};
    next_[space] += (bytes + 511) / 512 * 512;
    if (space == 1) {
      put(event_kind::allocate_on_stream, made.space, made.address, bytes, made.stream);
    } else {
      writer_.allocate(made.space, memprof::extend::block_address{made.address}, bytes,
                       pick(4) == 0 ? category::gradient : memprof::optional_category{});
    }
    live_.push_back(made);
  }
  void free_one() {
    if (live_.empty()) return;
    const std::size_t index = pick(live_.size());
    const live_block freed = live_[index];
    live_[index] = live_.back();
    live_.pop_back();
    if (freed.stream != 0) {
      const bool is_awaited = pick(2) == 0;  // streams may still use it
      writer_.put_event({0, freed.address, freed.bytes, freed.stream, event_kind::deallocate_on_stream, freed.space.value,
                         static_cast<std::uint16_t>(is_awaited ? 1 : 0)});
      if (is_awaited) awaited_.push_back(freed);
    } else {
      writer_.deallocate(freed.space, memprof::extend::block_address{freed.address}, freed.bytes);
    }
  }
  void rare() {
    switch (pick(8)) {
      case 0:
        writer_.deallocate(spaces_[0], memprof::extend::block_address{0x10}, 64);
        break;  // of a block that nobody allocated
      case 1: put(event_kind::out_of_memory, spaces_[1], 1000, 1'000'000'000'000, 0); break;
      case 2: writer_.on_thread(1 + static_cast<std::uint32_t>(pick(2)), "worker", 4712); break;
      case 3:
        if (!live_.empty() && live_.back().space == spaces_[2]) {  // a second allocation at a live address
          writer_.allocate(spaces_[2], memprof::extend::block_address{live_.back().address}, live_.back().bytes);
        }
        break;
      case 4:
      case 5:
        if (awaited_.empty()) break;
        put(event_kind::complete_deallocation, awaited_.back().space, awaited_.back().address, awaited_.back().bytes, 0);
        awaited_.pop_back();
        break;
      default:
        if (live_.empty()) break;
        writer_.annotate(memprof::extend::block_address{live_.back().address},
                         {"weight, \"w\"", "[3, 4]", "float32", category::parameter});
    }
  }

  memprof::extend::trace_writer writer_;
  std::mt19937_64 random_;
  std::vector<memprof::extend::space_id> spaces_;
  std::vector<memprof::extend::label> streams_;
  std::uint64_t next_[3] = {0x5500'0000'0000, 0x7f00'0000'0000, 0x1000};
  std::int64_t now_ = 0;
  std::vector<memprof::extend::open_operation> open_;
  std::vector<live_block> live_;
  std::vector<live_block> awaited_;
};

}  // namespace

int main(int count, char** arguments) {
  try {
    if (count < 2) throw memprof::error{"usage: sample_trace OUT.memtrace [EVENTS [SEED]]"};
    memprof::trace trace;
    sample{trace, count > 3 ? std::strtoull(arguments[3], nullptr, 10) : 1}.write(
        count > 2 ? std::strtoull(arguments[2], nullptr, 10) : 2000);
    memprof::write_trace(trace, arguments[1]);
  } catch (const std::exception& fault) {
    std::fprintf(stderr, "sample_trace: %s\n", fault.what());
    return 1;
  }
}
