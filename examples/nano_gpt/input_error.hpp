#pragma once

#include <stdexcept>

namespace nano_gpt {

/// Invalid user input. The text is one line that says what is wrong and how to fix it.
struct input_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace nano_gpt
