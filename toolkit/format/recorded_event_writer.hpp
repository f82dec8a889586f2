#pragma once

#include <memprof/trace/event.hpp>
#include <memprof/trace/event_writer.hpp>
#include <memprof/trace/label.hpp>

#include <concepts>
#include <cstdint>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

/// The operations that have a row of their own in the profile of an imported recording: stacks and compiled graphs have many
/// more than a program marks. The table of a program with libtorch's 70,000 takes 100 MB.
inline constexpr std::uint32_t imported_operations = 131'072;

/// An `event_writer` for events recorded elsewhere: it takes their time and thread, and any kind of event. `trace_writer` is one.
template <class T>
concept recorded_event_writer = extend::event_writer<T> &&
    requires(T writer, std::int64_t ns, std::uint32_t thread, std::string_view name, const extend::event& other) {
  writer.at(ns);
  writer.on_thread(thread, name, std::uint64_t{});
  writer.put_event(other);
  { writer.label_of(name) } -> std::same_as<extend::label>;
};

}  // namespace memprof::inline MEMPROF_ABI
