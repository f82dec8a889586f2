#include "arrow.hpp"

#include "table.hpp"

#include <nanobind/nanobind.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

// The names and layouts of https://arrow.apache.org/docs/format/CDataInterface.html.
struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  std::int64_t flags;
  std::int64_t n_children;
  ArrowSchema** children;
  ArrowSchema* dictionary;
  void (*release)(ArrowSchema*);
  void* private_data;
};
struct ArrowArray {
  std::int64_t length;
  std::int64_t null_count;
  std::int64_t offset;
  std::int64_t n_buffers;
  std::int64_t n_children;
  const void** buffers;
  ArrowArray** children;
  ArrowArray* dictionary;
  void (*release)(ArrowArray*);
  void* private_data;
};
struct ArrowArrayStream {
  int (*get_schema)(ArrowArrayStream*, ArrowSchema*);
  int (*get_next)(ArrowArrayStream*, ArrowArray*);
  const char* (*get_last_error)(ArrowArrayStream*);
  void (*release)(ArrowArrayStream*);
  void* private_data;
};

namespace memprof_python {
namespace {

/// What a consumer holds until it calls `release`. A column has one of its own, as a consumer may keep it when it releases the
/// rest.
template <class Described>
struct held {
  std::shared_ptr<const table> rows;
  std::array<const void*, 3> buffers{};
  std::vector<std::unique_ptr<Described>> columns{};
  std::vector<Described*> children{};
};

template <class Described>
void release(Described* released) {
  const std::unique_ptr<held<Described>> last{static_cast<held<Described>*>(released->private_data)};
  for (Described* const child : last->children) {
    if (child->release != nullptr) child->release(child);
  }
  released->release = nullptr;
}

/// A description that holds the table, and has so many columns, which are yet to be filled.
template <class Described>
[[nodiscard]] Described hold(const std::shared_ptr<const table>& rows, std::size_t columns) {
  auto kept = std::make_unique<held<Described>>(held<Described>{rows});
  for (std::size_t column = 0; column < columns; ++column) {
    kept->children.push_back(kept->columns.emplace_back(std::make_unique<Described>()).get());
  }
  Described made{};
  made.n_children = static_cast<std::int64_t>(columns);
  made.children = kept->children.data();
  made.release = release<Described>;
  made.private_data = kept.release();
  return made;
}

struct column_format {
  const char* operator()(const integer_values&) const { return "l"; }
  const char* operator()(const real_values&) const { return "g"; }
  const char* operator()(const truth_values&) const { return "b"; }
  const char* operator()(const text_values&) const { return "U"; }
};

[[nodiscard]] ArrowSchema schema_of(const std::shared_ptr<const table>& rows) {
  ArrowSchema all = hold<ArrowSchema>(rows, rows->columns.size());
  all.format = "+s";
  all.name = "";
  ArrowSchema** child = all.children;
  for (const table_column& column : rows->columns) {
    ArrowSchema& made = ** child++ = hold<ArrowSchema>(rows, 0);
    made.format = std::visit(column_format{}, column.values);
    made.name = column.name.c_str();
  }
  return all;
}

/// The buffers of a column after that of its validity, which is absent: no cell is null.
struct column_buffers {
  std::array<const void*, 3>& out;

  std::int64_t operator()(const integer_values& column) const { return out[1] = column.values.data(), 2; }
  std::int64_t operator()(const real_values& column) const { return out[1] = column.values.data(), 2; }
  std::int64_t operator()(const truth_values& column) const { return out[1] = column.bits.data(), 2; }
  std::int64_t operator()(const text_values& column) const {
    out[1] = column.ends.data();
    out[2] = column.bytes.data();
    return 3;
  }
};

[[nodiscard]] ArrowArray array_of(const std::shared_ptr<const table>& rows) {
  const auto buffers_of = [](ArrowArray & made) -> auto& { return static_cast<held<ArrowArray>*>(made.private_data)->buffers; };
  ArrowArray all = hold<ArrowArray>(rows, rows->columns.size());
  all.length = static_cast<std::int64_t>(rows->rows);
  all.n_buffers = 1;
  all.buffers = buffers_of(all).data();
  ArrowArray** child = all.children;
  for (const table_column& column : rows->columns) {
    ArrowArray& made = ** child++ = hold<ArrowArray>(rows, 0);
    made.length = all.length;
    made.n_buffers = std::visit(column_buffers{buffers_of(made)}, column.values);
    made.buffers = buffers_of(made).data();
  }
  return all;
}

/// What the stream still has to hand out.
struct source {
  std::shared_ptr<const table> rows;
  bool has_ended = false;
};

[[nodiscard]] source& source_of(ArrowArrayStream* stream) { return *static_cast<source*>(stream->private_data); }

/// Calls `make()` for a C caller; the error number if there is no memory.
template <class Make>
int for_c(Make&& make) noexcept {
  try {
    make();
    return 0;
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
}

}  // namespace

nanobind::capsule arrow_stream_of(std::shared_ptr<const table> rows) {
  auto stream = std::make_unique<ArrowArrayStream>(
      ArrowArrayStream{.get_schema = [](ArrowArrayStream* from,
                                        ArrowSchema* out) { return for_c([&] { *out = schema_of(source_of(from).rows); }); },
                       .get_next =
                           [](ArrowArrayStream* from, ArrowArray* out) {
                             if (std::exchange(source_of(from).has_ended, true)) {
                               *out = {};  // the end: an array that is released
                               return 0;
                             }
                             return for_c([&] { *out = array_of(source_of(from).rows); });
                           },
                       .get_last_error = [](ArrowArrayStream*) -> const char* { return nullptr; },
                       .release =
                           [](ArrowArrayStream* released) {
                             delete &source_of(released);
                             released->release = nullptr;
                           },
                       .private_data = new source{std::move(rows)}});
  return nanobind::capsule(stream.release(), "arrow_array_stream", [](void* kept) noexcept {
    auto* const unread = static_cast<ArrowArrayStream*>(kept);
    if (unread->release != nullptr) unread->release(unread);  // a consumer clears it when it takes the stream
    delete unread;
  });
}

}  // namespace memprof_python
