#pragma once

#include <memprof/backend/torch/capture/torch_thread.hpp>
#include <memprof/record/event_sink.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/trace/label.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI::detail {

/// A name's label and lasting text, by the thread's cache of texts. Its id is 0 if the system has no memory.
[[nodiscard]] inline torch_thread::known_text known_text_of(torch_thread& self, std::string_view name) noexcept {
  const std::size_t place = label_table::hash_of(name) % torch_thread::cached_texts;
  torch_thread::known_text* const pair[] = {&self.texts[place], &self.texts[place ^ 1U]};
  for (const torch_thread::known_text* const known : pair) {
    if (known->id != 0 && label_table::is_text(known->text, known->size, name)) [[likely]]
      return *known;
  }
  const label id = event_sink{}.label_of(name);
  if (id == 0) return {};
  const std::string_view text = event_sink{}.text_of(id);
  torch_thread::known_text& kept = pair[0]->id == 0 || pair[1]->id != 0 ? *pair[0] : *pair[1];
  return kept = {text.data(), static_cast<std::uint32_t>(text.size()), id};
}

/// The label of an operator's name. The name of a registered operator never moves, so that one comparison finds it; that of a
/// node of the backward pass is another string each time.
[[nodiscard]] inline label operator_label(torch_thread& self, const char* name) noexcept {
  torch_thread::known_name& known = self.names[(reinterpret_cast<std::uintptr_t>(name) >> 4) % torch_thread::cached_names];
  if (known.pointer == name && std::strncmp(known.text, name, known.size) == 0 && name[known.size] == '\0') [[likely]]
    return known.id;
  const torch_thread::known_text found = known_text_of(self, name);
  if (found.id != 0) known = {name, found.text, found.size, found.id};
  return found.id;
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
