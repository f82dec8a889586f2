#pragma once

#include <memprof/backend/torch/capture/torch_thread.hpp>
#include <memprof/record/event_sink.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/trace/label.hpp>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI::detail {

/// The label of an operator's name. The name of a registered operator never moves, so that one comparison finds it.
[[nodiscard]] inline label operator_label(torch_thread& self, const char* name) noexcept {
  torch_thread::known_name& known = self.names[(reinterpret_cast<std::uintptr_t>(name) >> 4) % torch_thread::cached_names];
  if (known.pointer == name && std::strncmp(known.text, name, known.size) == 0 && name[known.size] == '\0') [[likely]]
    return known.id;
  const label id = event_sink{}.label_of(name);
  if (id == 0) return 0;  // no memory
  const std::string_view text = event_sink{}.text_of(id);
  known = {name, text.data(), text.size(), id};
  return id;
}

/// The label "gradients of `scope`".
[[nodiscard]] inline label gradients_label(torch_thread& self, label scope) {
  torch_thread::known_gradients& known = self.gradients[scope % torch_thread::cached_gradients];
  if (known.scope == scope) [[likely]]
    return known.gradients;
  const recording_suppressor hidden;
  std::string text{"gradients of "};
  text += event_sink{}.text_of(scope);
  known = {scope, event_sink{}.label_of(text)};
  return known.gradients;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
