#pragma once

#include <memprof/trace/category.hpp>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// The part of a training step that an operation belongs to. Programs name their operations differently; parts can be compared.

namespace memprof::inline MEMPROF_ABI {

/// Operations whose path matches `pattern` belong to `part`. A pattern is a path of globs: `*` matches any characters within a
/// name, `**` any number of names.
struct part_rule {
  std::string pattern;
  std::string part;

  bool operator==(const part_rule&) const = default;
};

/// The operations of memprof's own examples; the estimator uses those of examples/nano_gpt. The first matching rule counts.
inline constexpr std::array<std::array<std::string_view, 2>, 16> known_parts{{
    // examples/nano_gpt
    {"batch", "inputs"},
    {"forward/embedding/**", "embedding"},
    {"forward/block/attention/**", "attention"},  // in examples/torch_gpt, too
    {"forward/block/mlp/**", "mlp"},
    {"forward/block/**", "norms and residuals"},
    {"forward/layer_norm", "head and loss"},
    {"forward/rms_norm", "head and loss"},
    {"forward/lm_head/**", "head and loss"},
    {"forward/cross_entropy/**", "head and loss"},
    {"backward/block/recomputation/**", "recomputation"},
    {"backward/**", "backward"},
    {"adamw/**", "optimizer"},
    {"free_gradients/**", "optimizer"},
    // examples/torch_gpt
    {"forward/head/**", "head and loss"},
    {"forward/aten::*/**", "embedding"},
    {"gradients of */**", "backward"},
}};

namespace detail {

/// Whether a name matches a glob in which `*` matches any characters.
[[nodiscard]] bool matches_glob(std::string_view glob, std::string_view name);

/// Whether the names from `first` on match a pattern.
[[nodiscard]] bool matches_path(std::string_view pattern, const std::vector<std::string>& names, std::size_t first = 0);

/// A path as profiles and summaries write it (`append_operation`), without the backslashes before those of its names.
[[nodiscard]] std::string without_escapes(std::string_view path);

/// A name with its numbers replaced by '*', so that layers that differ only in a number look alike: "h.11/attn" is "h.*/attn".
/// Digits after a letter belong to the name.
[[nodiscard]] std::string with_folded_layers(std::string_view name);

}  // namespace detail

/// The name of operations and parts for allocations outside every operation.
inline constexpr std::string_view outside_every_operation = "(outside every operation)";

/// The place of an operation in a waterfall: its part, and its name there.
struct operation_place {
  std::string part;
  std::string operation;
};

/// The place of bytes with that category, allocated by the operation `path` (names from the outermost on). `rules` take
/// precedence over the categories, and those over `known_parts`; anything else is a part of its own, named by its scopes. The
/// outermost of libtorch's operators names the operation: which others it calls differs between real and fake tensors.
[[nodiscard]] operation_place place_of(const std::vector<std::string>& path, category kind,
                                       const std::vector<part_rule>& rules = {});

}  // namespace memprof::inline MEMPROF_ABI
