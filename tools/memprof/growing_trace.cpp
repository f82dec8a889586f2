#include "growing_trace.hpp"

#include "output_file.hpp"

#include <memprof/detail/file_io.hpp>
#include <memprof/profile/trace_profile.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/crc32c.hpp>
#include <memprof/trace/definitions.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/fact_table.hpp>
#include <memprof/trace/file_layout.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/trace_file.hpp>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

namespace memprof_tool {
namespace {

/// Writes a chunk in the format of trace files; false on failure.
bool put_chunk(std::FILE* file, const unsigned char* bytes, std::size_t size, std::uint32_t number) {
  memprof::detail::chunk_header header;
  header.bytes = static_cast<std::uint32_t>(size);
  header.number = number;
  header.checksum = memprof::detail::crc32c::extend(0, bytes, size);
  return memprof::detail::write_text(file, memprof::detail::as_text(header.encode())) &&
         memprof::detail::write_text(file, {reinterpret_cast<const char*>(bytes), size});
}

constexpr const char* temporary_name = "a temporary file";

[[noreturn]] void raise_about_temporary(int error) {
  throw output_error{std::string{"cannot write "} + temporary_name + ": " + memprof::detail::text_of_errno(error)};
}

/// Copies the rest of a file to another one; false on failure.
bool copy_rest(std::FILE* from, std::FILE* to) {
  std::array<char, std::size_t{64} * 1024> buffer{};
  while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), from)) {
    if (!memprof::detail::write_text(to, {buffer.data(), got})) return false;
  }
  return std::ferror(from) == 0;
}

}  // namespace

/// The chunks in the temporary file, and the names and facts that precede the events in memory.
class growing_trace::older_part final : public memprof::detail::trace_head {
 public:
  void info(const memprof::extend::capture_info& info) override { definitions_.info(info); }
  void name(memprof::extend::label id, std::string_view text) noexcept override { definitions_.name(id, text); }
  void space(const memprof::extend::space_definition& space) noexcept override { definitions_.space(space); }
  void facts(memprof::fact_table&& table) override { definitions_.facts(table); }
  [[nodiscard]] std::uint64_t drop(const unsigned char* bytes, std::size_t size) noexcept override {
    definitions_.for_each_chunk([this](const unsigned char* part, std::size_t part_size) { put(part, part_size); });
    definitions_ = memprof::trace{};
    put(bytes, size);
    return 0;  // nothing is lost
  }
  [[nodiscard]] std::uint64_t dropped() const noexcept override { return 0; }
  void write(memprof::trace& beginning) override { beginning.append(definitions_); }
  [[nodiscard]] std::size_t bytes() const noexcept override { return definitions_.bytes(); }
  void destroy() noexcept override {}  // its owner destroys it

  [[nodiscard]] bool empty() const noexcept { return chunks_ == 0; }

  /// Writes the whole trace, whose newer part is in memory, to a file; false on failure.
  bool write_with(const memprof::trace& newer, std::FILE* out) const {
    memprof::trace tail;
    if (newer.left_out() != 0) {
      const memprof::extend::event gap{0, 0, newer.left_out(), 0, memprof::extend::event_kind::gap, memprof::extend::any_space,
                                       0};
      tail.events(&gap, &gap + 1, memprof::detail::no_ring_id);
    }
    const auto for_each_chunk = [&](auto&& visit) {
      newer.for_each_chunk(visit);
      tail.for_each_chunk(visit);
    };
    memprof::detail::trace_file_header header;
    header.chunks = chunks_;
    header.bytes = memprof::detail::trace_file_header::size + bytes_;
    for_each_chunk([&](const unsigned char*, std::size_t size) {
      ++header.chunks;
      header.bytes += memprof::detail::chunk_header::size + size;
    });
    bool is_written = memprof::detail::write_text(out, memprof::detail::as_text(header.encode()));
    if (file_) {
      std::rewind(file_.get());
      is_written = is_written && copy_rest(file_.get(), out);
    }
    std::uint32_t number = chunks_;
    for_each_chunk(
        [&](const unsigned char* bytes, std::size_t size) { is_written = is_written && put_chunk(out, bytes, size, number++); });
    return is_written;
  }
  /// Throws `output_error` if writing the temporary file has failed.
  void check() const {
    if (error_ != 0) raise_about_temporary(error_);
  }

 private:
  void put(const unsigned char* bytes, std::size_t size) noexcept {
    if (error_ != 0) return;
    if (!file_) file_.reset(std::tmpfile());
    if (file_ && put_chunk(file_.get(), bytes, size, chunks_)) {
      ++chunks_;
      bytes_ += memprof::detail::chunk_header::size + size;
    } else {
      error_ = errno != 0 ? errno : EIO;
    }
  }

  memprof::trace definitions_;
  memprof::detail::file_handle file_;
  std::uint32_t chunks_ = 0;
  std::uint64_t bytes_ = 0;
  int error_ = 0;  ///< the `errno` that stopped the writing
};

growing_trace::growing_trace() : older_{std::make_unique<older_part>()} {
  constexpr std::size_t chunk_bytes = std::size_t{256} * 1024;
  constexpr std::size_t bytes_in_memory = std::size_t{64} << 20;
  target_.keep_newest(bytes_in_memory, chunk_bytes, older_.get());
}
growing_trace::~growing_trace() = default;

bool growing_trace::write(std::FILE* file) const {
  older_->check();
  return older_->write_with(target_, file);
}

std::FILE* growing_trace::whole() const {
  if (!whole_) {
    whole_.reset(std::tmpfile());
    if (!whole_ || !write(whole_.get()) || std::fflush(whole_.get()) != 0) raise_about_temporary(errno);
  }
  std::rewind(whole_.get());
  return whole_.get();
}

memprof::profile growing_trace::profile(memprof::facets asked) const {
  older_->check();
  if (older_->empty()) return memprof::profile_of(target_, asked);
  memprof::trace_file_status status;
  return memprof::profile_of(whole(), temporary_name, status, 0, asked);
}

void growing_trace::visit(memprof::detail::trace_visitor_view& visitor) const {
  older_->check();
  if (older_->empty()) return target_.visit(visitor);
  (void)memprof::read_trace(whole(), temporary_name, visitor);
}

}  // namespace memprof_tool
