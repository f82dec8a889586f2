#pragma once

#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>

#include <array>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <string>
#include <string_view>

/// @file
/// A JSON document that is read front to back: its characters, and places in it for messages.

namespace memprof::inline MEMPROF_ABI::detail {

/// Where a document comes from and what it should hold, for error messages.
struct document_source {
  std::string_view name;                ///< a file, or words such as "JSON text"
  std::string_view what = "a profile";  ///< a noun
  std::string_view remedy = "write it again with memprof::write_json";
};

[[noreturn]] inline void raise_about_document(const document_source& source, const std::string& text) {
  raise("cannot read " + std::string{source.what} + " from '" + std::string{source.name} + "': " + text);
}

/// A place in a document, kept as a chain on the stack: the JSON pointer's text is built only for an error.
struct json_place {
  document_source source;
  const json_place* parent = nullptr;
  std::string_view key = {};  ///< in an object
  std::size_t index = 0;      ///< in an array, if `key` is empty

  [[nodiscard]] json_place operator[](std::string_view member) const noexcept { return {source, this, member, 0}; }
  [[nodiscard]] json_place operator[](std::size_t element) const noexcept { return {source, this, {}, element}; }

  /// "/spaces/0/name"; empty for the whole document (RFC 6901).
  [[nodiscard]] std::string pointer() const {
    if (parent == nullptr) return {};
    return parent->pointer() + '/' + (key.empty() ? std::to_string(index) : std::string{key});
  }
};

/// The bytes of a text or a file, counted as they are consumed. Only a small part of a file is in memory.
class json_input {
 public:
  explicit json_input(std::string_view text) noexcept : next_{text.data()}, end_{text.data() + text.size()} {}
  /// The file must stay open. A file system error is raised with `path` when it occurs.
  json_input(std::FILE* file, const std::filesystem::path& path) : file_{file}, path_{&path} { refill(); }

  json_input(const json_input&) = delete;
  json_input& operator=(const json_input&) = delete;

  [[nodiscard]] bool at_end() const noexcept { return next_ == end_; }
  [[nodiscard]] char front() const noexcept { return *next_; }
  void drop_front() {
    ++taken_;
    if (++next_ == end_ && file_ != nullptr) refill();
  }
  /// Number of bytes consumed so far.
  [[nodiscard]] std::size_t taken() const noexcept { return taken_; }
  /// Marks the end of a string or number. The parser keeps everything between two such ends in memory, so more than 4 MiB of it
  /// in a file is rejected.
  void end_token() noexcept { token_begin_ = taken_; }

 private:
  void refill() {
    constexpr std::size_t most = std::size_t{4} << 20;
    if (taken_ - token_begin_ > most) {
      raise_about_file("read", *path_,
                       "byte " + std::to_string(token_begin_) + ": no string or number ends within " + std::to_string(most) +
                           " bytes from here");
    }
    const std::size_t size = std::fread(buffer_.data(), 1, buffer_.size(), file_);
    if (size == 0 && std::ferror(file_) != 0) raise_about_file("read", *path_, reason_in_errno());
    next_ = buffer_.data();
    end_ = next_ + size;
  }

  const char* next_ = nullptr;
  const char* end_ = nullptr;
  std::size_t taken_ = 0;
  std::size_t token_begin_ = 0;
  std::FILE* file_ = nullptr;
  const std::filesystem::path* path_ = nullptr;
  std::array<char, 1 << 14> buffer_;
};

/// An input iterator over a `json_input`, as nlohmann/json requires. Copies share the position.
struct json_input_iterator {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;

  json_input* input = nullptr;  ///< null: the end

  char operator*() const noexcept { return input->front(); }
  json_input_iterator& operator++() {
    input->drop_front();
    return *this;
  }
  void operator++(int) { ++*this; }
  friend bool operator==(const json_input_iterator& left, const json_input_iterator& right) noexcept {
    return left.is_end() == right.is_end();
  }

 private:
  [[nodiscard]] bool is_end() const noexcept { return input == nullptr || input->at_end(); }
};

/// What a document must declare, and how strictly it is read.
struct json_rules {
  std::string_view format = {};  ///< value of its key "format"; empty: none required
  std::int64_t version = 0;      ///< greatest permitted value of its key "version", if it has a format
  std::int64_t oldest_version = version;
  bool refuses_unknown_keys = false;  ///< for hand-written files, where an unknown key is a misspelling
};

}  // namespace memprof::inline MEMPROF_ABI::detail
