// Frames are no part of Python's stable ABI: this file alone is compiled for one version of Python.
#undef Py_LIMITED_API
#ifndef Py_BUILD_CORE
#define Py_BUILD_CORE 1
#endif
#include <Python.h>
#if PY_VERSION_HEX >= 0x030b0000 && PY_VERSION_HEX < 0x030e0000 && !defined(Py_GIL_DISABLED) && !defined(PYPY_VERSION)
#define MEMPROF_READS_FRAMES 1
#include <internal/pycore_frame.h>
#else
#define MEMPROF_READS_FRAMES 0
#endif

#include "interpreter_stack.hpp"

#include <memprof/detail/error.hpp>
#include <memprof/record/find_label.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/memory_name.hpp>
#include <memprof/trace/stack_name.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

namespace memprof_python {
namespace {

std::string left_out_folder;  // set while nobody reads it: before the libraries ask
std::atomic<std::size_t> least_bytes{0};
std::atomic<std::int64_t> unnamed_blocks{0};

#if MEMPROF_READS_FRAMES

constexpr char separator = '\x1f';

/// Adds a text as UTF-8, by looks alone: Python's own function keeps what it makes, which needs the interpreter's lock.
void add_text(PyObject* text, std::string& to) {
  const Py_ssize_t length = PyUnicode_GET_LENGTH(text);
  const void* const data = PyUnicode_DATA(text);
  if (PyUnicode_IS_COMPACT_ASCII(text)) {
    to.append(static_cast<const char*>(data), static_cast<std::size_t>(length));
    return;
  }
  const auto kind = PyUnicode_KIND(text);
  const auto add = [&](std::uint32_t byte) { to += static_cast<char>(static_cast<unsigned char>(byte)); };
  for (Py_ssize_t index = 0; index < length; ++index) {
    std::uint32_t code = PyUnicode_READ(kind, data, index);
    if (code >= 0xD800 && code < 0xE000) code = 0xFFFD;  // a byte of a file's name that is not UTF-8
    if (code < 0x80) {
      add(code);
    } else if (code < 0x800) {
      add(0xC0 | code >> 6);
      add(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
      add(0xE0 | code >> 12);
      add(0x80 | (code >> 6 & 0x3F));
      add(0x80 | (code & 0x3F));
    } else {
      add(0xF0 | code >> 18);
      add(0x80 | (code >> 12 & 0x3F));
      add(0x80 | (code >> 6 & 0x3F));
      add(0x80 | (code & 0x3F));
    }
  }
}

/// As `add_text`, but without what would end the text in a name of several.
void add_part(PyObject* text, std::string& to) {
  const std::size_t begin = to.size();
  add_text(text, to);
  for (std::size_t at = begin; at < to.size(); ++at) {
    if (to[at] == separator || to[at] == '\n') to[at] = ' ';
  }
}

[[nodiscard]] _PyInterpreterFrame* innermost_frame(const PyThreadState& thread) noexcept {
#if PY_VERSION_HEX < 0x030d0000
  return thread.cframe == nullptr ? nullptr : thread.cframe->current_frame;
#else
  return thread.current_frame;
#endif
}

[[nodiscard]] PyCodeObject* code_of(_PyInterpreterFrame& frame) noexcept {
#if PY_VERSION_HEX < 0x030d0000
  return frame.f_code;
#else
  return _PyFrame_GetCode(&frame);
#endif
}

/// A call in Python: the label of its function, file and line, which is a module of trace files, and the line.
struct python_call {
  memprof::extend::label place = 0;
  int line = 0;
};

/// The call of a frame; no place if it is of memprof's own package.
[[nodiscard]] python_call call_of(_PyInterpreterFrame& frame, std::string& text) {
  PyCodeObject* const code = code_of(frame);
  const int line = PyCode_Addr2Line(code, _PyInterpreterFrame_LASTI(&frame) * static_cast<int>(sizeof(_Py_CODEUNIT)));
  text.assign({separator, separator, separator});  // no file of machine code, no build-id, no address
  add_part(code->co_qualname, text);
  text += separator;
  const std::size_t file = text.size();
  add_part(code->co_filename, text);
  if (!left_out_folder.empty() && std::string_view{text}.substr(file).starts_with(left_out_folder)) return {};
  text += separator;
  const int known_line = line > 0 ? line : 0;
  text += std::to_string(known_line);
  return {memprof::detail::find_label(text), known_line};
}

/// The name of a thread's stack; 0: it executes no Python. Throws `std::bad_alloc`.
[[nodiscard]] memprof::extend::label name_stack(const PyThreadState& thread, bool& has_calls) {
  thread_local std::string text;
  std::array<python_call, memprof::detail::max_stack_frames> calls;
  std::size_t count = 0;
  for (_PyInterpreterFrame* frame = innermost_frame(thread); frame != nullptr && count < calls.size(); frame = frame->previous) {
    if (_PyFrame_IsIncomplete(frame)) continue;
    const python_call call = call_of(*frame, text);
    if (call.place != 0) calls[count++] = call;
  }
  has_calls = count != 0;
  if (!has_calls) return 0;
  memprof::detail::stack_text stack{memprof::detail::stack_part{}};
  while (count-- > 0) stack.add({calls[count].place, static_cast<std::uint64_t>(calls[count].line)});
  return memprof::detail::find_label(stack.view());
}

#endif

}  // namespace

#if MEMPROF_READS_FRAMES

void interpreter_stack::require_readable() {
  if (Py_Version >> 16 == PY_VERSION_HEX >> 16) return;
  const auto minor = [](unsigned long version) { return "3." + std::to_string(version >> 16 & 0xFF); };
  memprof::detail::raise("stacks of Python " + minor(Py_Version) + " cannot be read by a memprof that was built for " +
                         minor(PY_VERSION_HEX) + "; build it for this one: pip install --no-binary memprof");
}

std::uint32_t interpreter_stack::label_of_caller(std::size_t bytes) noexcept {
  if (bytes < least_bytes.load(std::memory_order_relaxed)) return 0;
  const PyThreadState* const thread = PyGILState_GetThisThreadState();
  if (thread == nullptr) return 0;
  try {
    bool has_calls = false;
    const memprof::extend::label name = name_stack(*thread, has_calls);
    if (name == 0 && has_calls) unnamed_blocks.fetch_add(1, std::memory_order_relaxed);
    return name;
  } catch (const std::exception&) {  // out of memory
    unnamed_blocks.fetch_add(1, std::memory_order_relaxed);
    return 0;
  }
}

#else

void interpreter_stack::require_readable() {
  memprof::detail::raise("stacks need CPython 3.11, 3.12 or 3.13 with its global lock; this is " + std::string{PY_VERSION});
}

std::uint32_t interpreter_stack::label_of_caller(std::size_t) noexcept { return 0; }

#endif

void interpreter_stack::begin(std::size_t from_bytes, std::string own_folder) {
  left_out_folder = std::move(own_folder);
  unnamed_blocks.store(0, std::memory_order_relaxed);
  least_bytes.store(from_bytes, std::memory_order_relaxed);
}

std::int64_t interpreter_stack::unnamed() noexcept { return unnamed_blocks.load(std::memory_order_relaxed); }

}  // namespace memprof_python
