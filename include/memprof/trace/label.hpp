#pragma once

#include <memprof/detail/page_array.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>

namespace memprof::inline MEMPROF_ABI {

namespace extend {

/// The id of an interned name; 0: no name. Events carry labels, never text.
using label = std::uint32_t;

/// Stands for every name beyond the process's limit; the greatest label that a block's annotation can have. It has no text in any
/// table.
inline constexpr label other_names = (label{1} << 24) - 1;

}  // namespace extend

namespace detail {

/// Separates the parts of a compound name, such as a stream and a pool.
inline constexpr char name_separator = '\x1f';

/// Limits of a table: number of names, and bytes of pages for their text.
struct label_limits {
  std::size_t names = other_names - 1;
  std::size_t text_bytes = ~std::size_t{0};
};

/// Interns names. Equal texts share one id, unless they were appended, and an id's text stays in place for the table's lifetime.
///
/// Not synchronised: the registry's table is used under the registry's lock. Memory grows with the number of distinct names.
class label_table {
 public:
  label_table() = default;
  label_table(const label_table&) = delete;
  label_table& operator=(const label_table&) = delete;
  ~label_table() {
    while (chunks_ != nullptr) {
      chunk* const next = chunks_->next;
      detail::unmap_pages(chunks_, chunks_->bytes);
      chunks_ = next;
    }
  }

  /// Names are cut to this many bytes, so that each fits into a chunk of a trace.
  static constexpr std::size_t max_name_bytes = std::size_t{32} * 1024;

  /// The id of `text`, interned if new; 0 if the system has no memory for it, `other_names` if it is new and the table has
  /// reached its limits.
  [[nodiscard]] label intern(std::string_view text, const label_limits& most = {}) noexcept {
    if (text.size() > max_name_bytes) text = text.substr(0, max_name_bytes);
    const bool is_full = entries_.size() >= most.names || chunk_bytes_ >= most.text_bytes;
    if (2 * (entries_.size() + 1) > slots_.size() && !is_full && !grow()) return 0;
    const std::uint32_t hash = hash_of(text);
    std::size_t slot = hash & (slots_.size() - 1);
    for (; slots_[slot] != 0; slot = (slot + 1) & (slots_.size() - 1)) {
      const entry& known = entries_[slots_[slot] - 1];
      if (known.hash == hash && is_text(known.text, known.size, text)) return slots_[slot];
    }
    if (is_full) return other_names;
    const char* const copy = store(text);
    if (copy == nullptr || !entries_.push_back({copy, static_cast<std::uint32_t>(text.size()), hash})) return 0;
    return slots_[slot] = static_cast<label>(entries_.size());
  }

  /// Adds a text under the next id, whether or not it is known: for tables that mirror another one. False if the system has no
  /// memory for it.
  bool append(std::string_view text) noexcept {
    const char* const copy = store(text);
    return copy != nullptr && entries_.push_back({copy, static_cast<std::uint32_t>(text.size()), 0});
  }

  /// The text of one of this table's ids; empty for 0 and for unknown ids.
  [[nodiscard]] std::string_view text(label id) const noexcept {
    if (id == 0 || id > entries_.size()) return {};
    const std::size_t size = entries_[id - 1].size;  // exactly std::size_t: any other type costs an extra check
    return {entries_[id - 1].text, size};
  }

  /// Number of names; their ids run from 1 to this.
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }

  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept { return entries_.bytes() + slots_.bytes() + chunk_bytes_; }

  /// The hash used by `intern` (32-bit FNV-1a), for caches in front of the table.
  [[nodiscard]] static constexpr std::uint32_t hash_of(std::string_view text) noexcept {
    std::uint32_t hash = 2166136261U;
    for (const char character : text) hash = (hash ^ static_cast<unsigned char>(character)) * 16777619U;
    return hash;
  }

  /// Whether the bytes equal `text`. The operator of `std::string_view` would make every translation unit compile its iterators'
  /// concepts.
  [[nodiscard]] static bool is_text(const char* bytes, std::uint32_t size, std::string_view text) noexcept {
    return size == text.size() && (size == 0 || std::memcmp(bytes, text.data(), size) == 0);
  }

 private:
  struct entry {
    const char* text;
    std::uint32_t size;
    std::uint32_t hash;
  };
  struct chunk {
    chunk* next;
    std::size_t bytes;
  };

  [[nodiscard]] bool grow() noexcept {
    detail::page_array<label> slots;
    if (!slots.resize(slots_.empty() ? 512 : 2 * slots_.size())) return false;
    for (std::size_t index = 0; index < entries_.size(); ++index) {
      std::size_t slot = entries_[index].hash & (slots.size() - 1);
      while (slots[slot] != 0) slot = (slot + 1) & (slots.size() - 1);
      slots[slot] = static_cast<label>(index + 1);
    }
    slots_ = std::move(slots);
    return true;
  }

  [[nodiscard]] const char* store(std::string_view text) noexcept {
    if (text.size() > free_) {
      const std::size_t wanted = sizeof(chunk) + text.size();
      const std::size_t bytes = wanted > default_chunk_bytes ? wanted : default_chunk_bytes;
      void* const pages = detail::map_pages(bytes);
      if (pages == nullptr) return nullptr;
      chunks_ = new (pages) chunk{chunks_, bytes};
      chunk_bytes_ += bytes;
      next_ = static_cast<char*>(pages) + sizeof(chunk);
      free_ = bytes - sizeof(chunk);
    }
    char* const copy = next_;
    if (!text.empty()) std::memcpy(copy, text.data(), text.size());
    next_ += text.size();
    free_ -= text.size();
    return copy;
  }

  static constexpr std::size_t default_chunk_bytes = 16384;

  detail::page_array<entry> entries_;
  detail::page_array<label> slots_;
  chunk* chunks_ = nullptr;
  std::size_t chunk_bytes_ = 0;
  char* next_ = nullptr;
  std::size_t free_ = 0;
};

}  // namespace detail

namespace extend {

/// Maps ids to texts, for any kind of table. Valid while its source stays in place.
class name_view {
 public:
  template <class Names>
  name_view(const Names& source) noexcept  // implicit, so that any table of names can be passed
      : source_(&source),
        text_([](const void* names, label id) noexcept { return static_cast<const Names*>(names)->text(id); }) {}

  /// The text of an id; empty for 0 and for unknown ids.
  [[nodiscard]] std::string_view text(label id) const noexcept { return text_(source_, id); }

 private:
  const void* source_;
  std::string_view (*text_)(const void*, label) noexcept;
};

}  // namespace extend

}  // namespace memprof::inline MEMPROF_ABI
