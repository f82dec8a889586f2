#pragma once

#include <memprof/detail/error.hpp>
#include <memprof/toolkit/format/mapped_file.hpp>
#include <memprof/toolkit/format/xla/protobuf_file.hpp>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// XLA profiles: the programs in `*.xplane.pb`, a `tensorflow.profiler.XSpace`, and in `*.hlo_proto.pb`, an `xla.HloProto`. Needs
/// protozero.

namespace memprof::inline MEMPROF_ABI {

/// A compiled program in a profile.
struct xplane_program {
  std::string name;  ///< "jit_train_step(4925098873813018656)": the module's name and the program's id
  std::uint64_t id = 0;
  std::string_view bytes;  ///< its `HloProto`, in the file
};

/// Runs of a program on a TPU core.
struct xplane_runs {
  std::string plane;    ///< "/device:TPU:0"
  std::string program;  ///< as `xplane_program::name`
  std::uint64_t count = 0;
};

enum class xplane_kind : std::uint8_t { none, space, program, riegeli };

/// The kind of a file, by its first bytes: a plane begins with its number, its name (field 2) or a line, and a module with its
/// name (field 1). The file must be at its start and is left there.
[[nodiscard]] xplane_kind xplane_kind_of(std::FILE* file);

/// The programs of a profile. The file is mapped; takes memory for the programs' names.
class xplane_file {
 public:
  /// `path` is the file's name, for messages and as the name of a single program. Throws `memprof::error` with the byte offset if
  /// the file is not a profile.
  xplane_file(std::FILE* file, const std::filesystem::path& path);

  [[nodiscard]] const std::vector<xplane_program>& programs() const noexcept { return programs_; }
  [[nodiscard]] const std::vector<xplane_runs>& runs() const noexcept { return runs_; }
  [[nodiscard]] const std::string& host() const noexcept { return host_; }
  [[nodiscard]] bool has_tpu() const noexcept { return has_tpu_; }
  /// Why something could not be read, as a sentence without a full stop; empty if everything was.
  [[nodiscard]] const std::string& damage() const noexcept { return damage_; }
  /// For readers of `xplane_program::bytes`.
  [[nodiscard]] const detail::protobuf_file& file() const noexcept { return file_; }
  /// The message of an error about the file without the file's name, for sentences that already name it.
  [[nodiscard]] std::string fault_of(const error& fault) const;

 private:
  [[nodiscard]] static std::string name_in(const std::filesystem::path& path);

  detail::mapped_file mapping_;
  detail::protobuf_file file_;
  std::vector<xplane_program> programs_;
  std::vector<xplane_runs> runs_;
  std::string host_;
  std::string damage_;
  bool has_tpu_ = false;
};

}  // namespace memprof::inline MEMPROF_ABI
