#pragma once

#include <memprof/memprof.hpp>

#include <memprof/backend/torch/capture/torch_thread.hpp>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace memprof::detail {

/// The text of a label, which stays where it is. Takes the registry's lock.
[[nodiscard]] inline std::string_view text_of_label(label id) noexcept {
  const control_guard control;
  const label_table* const labels = abi_1::process_registry.labels;
  return labels == nullptr ? std::string_view{} : labels->text(id);
}

/// The label of an operator's name. The names of registered operators stay at one address, so that one comparison finds them.
[[nodiscard]] inline label operator_label(torch_thread& self, const char* name) noexcept {
  torch_thread::known_name& known = self.names[(reinterpret_cast<std::uintptr_t>(name) >> 4) % torch_thread::cached_names];
  if (known.pointer == name && std::strncmp(known.text, name, known.size) == 0 && name[known.size] == '\0') [[likely]]
    return known.id;
  const label id = find_label(name);
  if (id == 0) return 0;  // no memory
  const std::string_view text = text_of_label(id);
  known = {name, text.data(), text.size(), id};
  return id;
}

/// The label "gradients of `scope`".
[[nodiscard]] inline label gradients_label(torch_thread& self, label scope) {
  torch_thread::known_gradients& known = self.gradients[scope % torch_thread::cached_gradients];
  if (known.scope == scope) [[likely]]
    return known.gradients;
  const nested_allocation hidden;
  std::string text{"gradients of "};
  text += text_of_label(scope);
  known = {scope, find_label(text)};
  return known.gradients;
}

}  // namespace memprof::detail
