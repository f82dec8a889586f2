#pragma once

#include <memprof/detail/page_array.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>

namespace memprof::inline MEMPROF_ABI {

/// The id of an interned name; 0 is no name. Events carry labels, never text.
using label = std::uint32_t;

/// Stands for every name that came when a process had too many: the last label that a block's annotation can have. No table has
/// a text for it.
inline constexpr label other_names = (label{1} << 24) - 1;

/// Stands between the parts of a name that has several, such as a stream and a pool.
inline constexpr char name_separator = '\x1f';

/// How many names a table may take in, and how many bytes of pages for their text.
struct label_limits {
  std::size_t names = other_names - 1;
  std::size_t text_bytes = ~std::size_t{0};
};

/// Names and their ids. Equal text has one id, unless it was appended, and the text of an id stays where it is for the table's
/// life.
///
/// Not synchronised: the registry's table is used under the registry's lock. Memory grows with the number of different names.
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

  /// Names are cut to this many bytes, so that each fits into a piece of a trace.
  static constexpr std::size_t max_name_bytes = std::size_t{32} * 1024;

  /// The id of `text`, interned if it is new; 0 if the system has no memory for it, `other_names` if it is new and the table has
  /// as much as it may.
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

  /// Adds a text under the next id, whether it is known or not: for tables that follow another one. False if the system has no
  /// memory for it.
  bool append(std::string_view text) noexcept {
    const char* const copy = store(text);
    return copy != nullptr && entries_.push_back({copy, static_cast<std::uint32_t>(text.size()), 0});
  }

  /// The text of an id of this table; empty for 0 and for ids it never gave.
  [[nodiscard]] std::string_view text(label id) const noexcept {
    if (id == 0 || id > entries_.size()) return {};
    const std::size_t size = entries_[id - 1].size;  // exactly std::size_t: any other type costs that check
    return {entries_[id - 1].text, size};
  }

  /// How many names there are: their ids are 1 to that.
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }

  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept { return entries_.bytes() + slots_.bytes() + chunk_bytes_; }

  /// The hash that `intern` uses (32-bit FNV-1a), for caches in front of the table.
  [[nodiscard]] static constexpr std::uint32_t hash_of(std::string_view text) noexcept {
    std::uint32_t hash = 2166136261U;
    for (const char character : text) hash = (hash ^ static_cast<unsigned char>(character)) * 16777619U;
    return hash;
  }

  /// Whether the bytes are those of `text`. `std::string_view`'s own operator costs every unit its iterators' concepts.
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

/// The texts of ids, whoever keeps them. As long as its source does not move.
class name_view {
 public:
  template <class Names>
  name_view(const Names& source) noexcept  // implicit: it is what is asked for names
      : source_(&source),
        text_([](const void* names, label id) noexcept { return static_cast<const Names*>(names)->text(id); }) {}

  /// The text of an id; empty for 0 and for one that is not known.
  [[nodiscard]] std::string_view text(label id) const noexcept { return text_(source_, id); }

 private:
  const void* source_;
  std::string_view (*text_)(const void*, label) noexcept;
};

}  // namespace memprof::inline MEMPROF_ABI
