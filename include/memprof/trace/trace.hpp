#pragma once

#include <memprof/detail/error.hpp>
#include <memprof/detail/page_array.hpp>
#include <memprof/detail/pages.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/decoder.hpp>
#include <memprof/trace/definitions.hpp>
#include <memprof/trace/encoder.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/fact_table.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/trace_head.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <string_view>
#include <utility>

namespace memprof::inline MEMPROF_ABI {

/// All events of a capture, in the order in which its ledger saw them, with everything needed to interpret them: names, memory
/// spaces, threads, the process, clock readings, facts. It can be folded any number of times, by another ledger or an allocator
/// model, and written to a file.
///
/// A capture fills one through `capture_options::trace`; `trace_writer` makes one from any other data. Takes about three bytes
/// per event, in pages that the hooks do not see. Not synchronised: read it after the capture has ended.
class trace {
 public:
  /// Keeps at most about `max_bytes`. Later events are counted but left out, so that the kept beginning has no gaps.
  explicit trace(std::size_t max_bytes = std::numeric_limits<std::size_t>::max()) noexcept : max_bytes_(max_bytes) {}
  trace(trace&& other) noexcept { swap(other); }
  trace& operator=(trace&& other) noexcept {
    swap(other);
    return *this;
  }
  ~trace() {
    for (const chunk& each : chunks_) detail::unmap_pages(each.bytes, chunk_bytes_);
    detail::unmap_pages(encoder_, sizeof(detail::trace_encoder));
    if (head_ != nullptr) head_->destroy();
  }

  /// Keeps the newest events within `max_bytes` instead, in chunks of `chunk_bytes`. The oldest chunk goes to `head`, which is
  /// destroyed with the trace. Call before the first record.
  void keep_newest(std::size_t max_bytes, std::size_t chunk_bytes, detail::trace_head* head) noexcept {
    max_bytes_ = max_bytes;
    chunk_bytes_ = chunk_bytes;
    head_ = head;
  }

  /// A longer one would not fit into a chunk.
  static constexpr std::size_t longest_name = std::size_t{128} * 1024;

  // --- writing ------------------------------------------------------------------------------------------------------

  /// Adds events [first, last) of one thread, identified by `ring`.
  void events(const extend::event* first, const extend::event* last, std::uint32_t ring) noexcept {
    while (first != last) {
      const extend::event* const done = has_room(detail::trace_encoder::max_event_bytes) ? encode(first, last, ring) : first;
      size_ += static_cast<std::uint64_t>(done - first);
      if (done != last && !begin_chunk()) {
        left_out_ += static_cast<std::uint64_t>(last - done);
        return;
      }
      first = done;
    }
  }
  void info(const extend::capture_info& info) {
    if (head_ != nullptr) return head_->info(info);
    define(detail::control::header, detail::encode_info(info));
  }
  /// Names precede the first event that uses them; their ids are 1, 2, 3, ... Cut to `longest_name` bytes.
  void name(extend::label id, std::string_view text) noexcept {
    if (text.size() > longest_name) text = text.substr(0, longest_name);
    if (head_ != nullptr) return head_->name(id, text);
    const detail::small_payload number = detail::small_payload{}.number(id);
    define(detail::control::name, number.view(), text);
  }
  void space(const extend::space_definition& space) noexcept {
    if (head_ != nullptr) return head_->space(space);
    define(detail::control::space, detail::encode_space(space).view());
  }
  /// Replaces the table with the same name.
  void facts(const fact_table& table) {
    if (head_ != nullptr) return head_->facts(detail::fitted(table));
    detail::for_each_part(detail::fitted(table), [&](std::string_view payload) { define(detail::control::facts, payload); });
  }

  /// Adds the records in the memory of another trace, as they are.
  void append(const trace& records) {
    struct copier {
      trace& to;
      void events(const extend::event* first, const extend::event* last, std::uint32_t ring) noexcept {
        to.events(first, last, ring);
      }
      void definition(detail::control kind, std::string_view payload) noexcept { to.define(kind, payload); }
    } copy{*this};
    records.decode(copy);
  }

  /// Adds the result of `write_saved_state` for a ledger that has seen exactly the events so far.
  void saved_state(const detail::page_array<unsigned char>& state) noexcept {
    if (head_ != nullptr) return;  // the head makes its own
    detail::for_each_saved_state_part(
        state, [this](std::string_view head, std::string_view bytes) { define(detail::control::saved_state, head, bytes); });
  }

  /// States how many of the ring's events precede this record, present or not: for a trace that starts in the middle.
  void position(std::uint32_t ring, std::uint64_t events) noexcept {
    if (head_ == nullptr) define(detail::control::position, detail::small_payload{}.number(ring).number(events).view());
  }

  // --- reading ------------------------------------------------------------------------------------------------------

  /// Passes everything to `visitor`, record by record, in order. If something was left out, the last event is a `gap`.
  template <extend::trace_visitor Visitor>
  void visit(Visitor& visitor) const {
    struct adapter {
      Visitor& visitor;
      void events(const extend::event* first, const extend::event* last, std::uint32_t ring) {
        visitor.events(first, last, ring);
      }
      void definition(detail::control kind, std::string_view payload) { (void)detail::visit_definition(kind, payload, visitor); }
    };
    if (head_ != nullptr) {
      trace beginning;
      head_->write(beginning);
      beginning.visit(visitor);
    }
    adapter adapted{visitor};
    decode(adapted);
    if (left_out_ != 0) {
      const extend::event gap{0, 0, left_out_, 0, extend::event_kind::gap, extend::any_space, 0};
      visitor.events(&gap, &gap + 1, detail::no_ring_id);
    }
  }

  /// Number of kept events.
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return chunks_.empty() && head_ == nullptr; }
  /// Number of events after the kept ones.
  [[nodiscard]] std::uint64_t left_out() const noexcept { return left_out_; }
  /// Number of events before the kept ones (`capture_options::trace_limit`). A profile of the trace still counts them.
  [[nodiscard]] std::uint64_t dropped() const noexcept { return head_ == nullptr ? 0 : head_->dropped(); }
  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept {
    return chunks_.size() * chunk_bytes_ + chunks_.bytes() + (head_ == nullptr ? 0 : head_->bytes());
  }
  /// Bytes used by records.
  [[nodiscard]] std::size_t encoded_bytes() const noexcept {
    std::size_t total = 0;
    for (const chunk& each : chunks_) total += each.used;
    return total;
  }

  /// Calls `visit(bytes, size)` for each independently readable chunk of the encoding (docs/trace_format.md).
  template <class Visitor>
  void for_each_chunk(Visitor&& visit) const {
    if (head_ != nullptr) {
      trace beginning;
      head_->write(beginning);
      beginning.for_each_chunk(visit);
    }
    for (const chunk& each : chunks_) visit(each.bytes, each.used);
  }

 private:
  struct chunk {
    unsigned char* bytes;
    std::size_t used;
  };

  template <class T>
  struct unmapped_at_end {
    T* object;
    explicit unmapped_at_end(T* made) noexcept : object(made) {}
    unmapped_at_end(const unmapped_at_end&) = delete;
    unmapped_at_end& operator=(const unmapped_at_end&) = delete;
    ~unmapped_at_end() { detail::unmap_pages(object, sizeof(T)); }
  };

  /// Not part of `decode`, since nvcc does not compile placement of an aligned type in a template.
  [[nodiscard]] static detail::trace_decoder* make_decoder() {
    void* const pages = detail::map_pages(sizeof(detail::trace_decoder));
    if (pages == nullptr) detail::raise("trace: the system has no memory to decode it");
    return new (pages) detail::trace_decoder;
  }

  /// Passes the records in memory to `visitor`, as `trace_decoder::decode` does.
  template <class Visitor>
  void decode(Visitor& visitor) const {
    const unmapped_at_end<detail::trace_decoder> decoder{make_decoder()};
    for (const chunk& each : chunks_) {
      decoder.object->restart();
      (void)decoder.object->decode(each.bytes, each.bytes + each.used, visitor);
    }
  }

  [[nodiscard]] bool has_room(std::size_t bytes) const noexcept {
    return !chunks_.empty() && chunk_bytes_ - chunks_[chunks_.size() - 1].used >= bytes;
  }

  [[nodiscard]] const extend::event* encode(const extend::event* first, const extend::event* last, std::uint32_t ring) noexcept {
    chunk& open = chunks_.back();
    detail::encoded_bytes out{open.bytes + open.used, open.bytes + chunk_bytes_};
    const extend::event* const done = encoder_->encode(first, last, ring, out);
    open.used = static_cast<std::size_t>(out.next - open.bytes);
    return done;
  }

  void define(detail::control kind, std::string_view payload, std::string_view more = {}) noexcept {
    if (left_out_ != 0) return;
    const std::size_t size = payload.size() + more.size();
    const std::size_t most = detail::trace_encoder::control_bytes(size);
    // One that is too long for a chunk ends the trace, so that the trace says that it is incomplete.
    if (most > chunk_bytes_ || (!has_room(most) && !begin_chunk())) {
      ++left_out_;
      return;
    }
    chunk& open = chunks_.back();
    detail::encoded_bytes out{open.bytes + open.used, open.bytes + chunk_bytes_};
    detail::trace_encoder::put_control(kind, payload, more, out);
    open.used = static_cast<std::size_t>(out.next - open.bytes);
  }

  [[nodiscard]] bool begin_chunk() noexcept {
    if (left_out_ != 0) return false;
    if (encoder_ == nullptr) {
      void* const pages = detail::map_pages(sizeof(detail::trace_encoder));
      if (pages == nullptr) return false;
      encoder_ = new (pages) detail::trace_encoder;
    }
    if (!add_chunk() && !recycle_oldest()) return false;
    encoder_->restart();
    return true;
  }

  [[nodiscard]] bool add_chunk() noexcept {
    if ((chunks_.size() + 1) * chunk_bytes_ > max_bytes_) return false;
    void* const pages = detail::map_pages(chunk_bytes_);
    if (pages == nullptr) return false;
    if (chunks_.push_back({static_cast<unsigned char*>(pages), 0})) return true;
    detail::unmap_pages(pages, chunk_bytes_);
    return false;
  }

  [[nodiscard]] bool recycle_oldest() noexcept {
    if (head_ == nullptr || chunks_.empty()) return false;
    const chunk oldest = chunks_[0];
    size_ -= head_->drop(oldest.bytes, oldest.used);
    chunks_.erase(0);
    return chunks_.push_back({oldest.bytes, 0});
  }

  void swap(trace& other) noexcept {
    std::swap(max_bytes_, other.max_bytes_);
    std::swap(size_, other.size_);
    std::swap(left_out_, other.left_out_);
    std::swap(chunks_, other.chunks_);
    std::swap(encoder_, other.encoder_);
    std::swap(chunk_bytes_, other.chunk_bytes_);
    std::swap(head_, other.head_);
  }

  std::size_t max_bytes_ = std::numeric_limits<std::size_t>::max();
  std::uint64_t size_ = 0;
  std::uint64_t left_out_ = 0;
  detail::page_array<chunk> chunks_;
  detail::trace_encoder* encoder_ = nullptr;
  std::size_t chunk_bytes_ = std::size_t{256} * 1024;
  detail::trace_head* head_ = nullptr;  ///< null: nothing is dropped
};

}  // namespace memprof::inline MEMPROF_ABI
