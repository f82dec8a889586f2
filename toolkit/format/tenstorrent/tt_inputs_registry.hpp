#pragma once

#include <memprof/config.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

/// An argument of the function `main` of a compiled module.
struct tt_input {
  std::string ssa;   ///< "%arg0"
  std::string name;  ///< `ttir.name`, or else `ssa`
  std::string type;  ///< "parameter", "constant", "input", or "unknown"
  std::string shape;
  std::string dtype;
  std::int64_t bytes = 0;  ///< of the elements, without padding

  [[nodiscard]] bool is_weight() const noexcept { return type == "parameter" || type == "constant"; }
};

/// The size in bytes of an element of an MLIR or StableHLO type; 4 for unknown types, as in tt-mlir's own profiler.
[[nodiscard]] std::int64_t bytes_of_mlir_type(std::string_view type) noexcept;

namespace detail {

/// Collects the arguments of `func.func @main(` from the dumps of modules in a log: from the first of `shlo_frontend`,
/// `shlo_compiler` and `shlo` that is there.
class tt_inputs_registry {
 public:
  /// Takes each line of the log in order.
  void line(std::string_view text);

  [[nodiscard]] const std::vector<tt_input>& inputs() const noexcept { return inputs_; }
  /// Whether a module is being read.
  [[nodiscard]] bool is_in_module() const noexcept { return section_ != none; }
  /// Whether a module's `main` was found.
  [[nodiscard]] bool has_module() const noexcept { return best_ != none; }

 private:
  static constexpr std::string_view head = "func.func @main(";
  static constexpr std::array<std::string_view, 3> sections{"shlo_frontend:", "shlo_compiler:", "shlo:"};
  static constexpr std::size_t none = sections.size();
  static constexpr std::size_t longest_signature = std::size_t{16} * 1024 * 1024;

  void begin(std::string_view section);
  void end();

  void add(std::string_view argument);

  /// The text between the first `open` and `close` after `key =`.
  [[nodiscard]] static std::string quoted(std::string_view text, std::string_view key, char open, char close);

  std::size_t best_ = none;  ///< the section that `inputs_` is from
  std::size_t section_ = none;
  bool is_open_ = false;
  std::string signature_;
  std::vector<tt_input> inputs_;
};

}  // namespace detail
}  // namespace memprof::inline MEMPROF_ABI
