#pragma once

#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/definitions.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/fact_table.hpp>
#include <memprof/trace/label.hpp>

#include <concepts>
#include <cstdint>
#include <string_view>
#include <utility>

namespace memprof::inline MEMPROF_ABI {

namespace detail {

/// A `trace_visitor` of unknown type. Not abstract, as the concept would not take that.
class trace_visitor_view {
 public:
  trace_visitor_view() = default;
  trace_visitor_view(const trace_visitor_view&) = delete;
  trace_visitor_view& operator=(const trace_visitor_view&) = delete;
  virtual ~trace_visitor_view() = default;

  virtual void info(const capture_info&) {}
  virtual void name(label, std::string_view) {}
  virtual void space(const space_definition&) {}
  virtual void facts(fact_part&&) {}
  virtual void events(const event*, const event*, std::uint32_t) {}
  virtual bool saved_state(const saved_state_part&) { return true; }
};

template <trace_visitor Visitor>
class trace_visitor_view_of final : public trace_visitor_view {
 public:
  explicit trace_visitor_view_of(Visitor& visitor) noexcept : visitor_(visitor) {}

  void info(const capture_info& info) override { visitor_.info(info); }
  void name(label id, std::string_view text) override { visitor_.name(id, text); }
  void space(const space_definition& space) override { visitor_.space(space); }
  void facts(fact_part&& part) override { visitor_.facts(std::move(part)); }
  void events(const event* first, const event* last, std::uint32_t ring) override { visitor_.events(first, last, ring); }
  bool saved_state(const saved_state_part& part) override {
    if constexpr (requires { visitor_.saved_state(part); }) return visitor_.saved_state(part);
    return true;
  }

 private:
  Visitor& visitor_;
};

}  // namespace detail

/// Refers to anything that can replay a trace repeatedly (`trace_source`), so that a writer is compiled once; the source must
/// outlive it. It is a source itself. Costs an indirect call for each run of events.
class trace_source_view {
 public:
  template <class Source>
  requires(!std::same_as<Source, trace_source_view> &&
           requires(const Source& source, detail::trace_visitor_view& visitor) { source.visit(visitor); })
      trace_source_view(const Source& source)
      : source_(&source),
        visit_([](const void* from, detail::trace_visitor_view& visitor) { static_cast<const Source*>(from)->visit(visitor); }) {}

  template <extend::trace_visitor Visitor>
  void visit(Visitor& visitor) const {
    detail::trace_visitor_view_of<Visitor> passed{visitor};
    visit_(source_, passed);
  }

 private:
  const void* source_;
  void (*visit_)(const void* source, detail::trace_visitor_view& visitor);
};

}  // namespace memprof::inline MEMPROF_ABI
