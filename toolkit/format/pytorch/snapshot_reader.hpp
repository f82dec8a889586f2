#pragma once

#include <memprof/toolkit/format/function_name.hpp>
#include <memprof/toolkit/format/pytorch/snapshot_facts.hpp>
#include <memprof/trace/capture_info.hpp>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace extend {

class trace_writer;

}  // namespace extend

namespace detail {
class torch_history;
}

/// A PyTorch memory snapshot (`torch.cuda.memory._dump_snapshot`, pickle or JSON) as a source: each device is a memory space
/// `cuda:N`, in which freed blocks that streams still use stay active; stacks of frames are operations, `record_function`
/// annotations are segments, pinned host memory is the space `pinned`, and what the allocator reserves is recorded with stream
/// and pool. Sizes are the requested ones.
///
/// What was live before the history begins, because it was not recorded or has left the ring buffer, comes first, in a segment
/// and an operation of its own. The file is read twice. Takes memory for what is live, for distinct stacks, and 16 bytes for each
/// object that a pickle memoizes; if several devices have a history, also for their events, which have to be sorted.
class torch_snapshot_source {
 public:
  /// Reads the file for the first time. The caller keeps the file, which must be seekable. Raises an error with file and place if
  /// it holds no snapshot.
  torch_snapshot_source(std::FILE* file, std::filesystem::path path, stack_frames frames = stack_frames::own);
  torch_snapshot_source(torch_snapshot_source&&) noexcept;
  torch_snapshot_source& operator=(torch_snapshot_source&&) noexcept;
  ~torch_snapshot_source();

  /// Whether a file begins as a pickle does. Protocols 0 and 1, which are rejected, have no marker, but their dictionaries always
  /// begin the same way. The file must be at its start and is left there.
  [[nodiscard]] static bool is_pickle(std::FILE* file);

  /// What its trace says about the capture.
  [[nodiscard]] extend::capture_info info() const;
  /// Why only the beginning could be read, as a sentence without a full stop; empty if all of it was.
  [[nodiscard]] const std::string& damage() const noexcept { return damage_; }
  /// Further remarks, each a sentence without a full stop: what was live before the history begins, and where the snapshot
  /// contradicts itself or is newer than this reader.
  [[nodiscard]] std::vector<std::string> remarks() const;

  /// Writes everything to a `trace_writer` except the end: call `writer.finish` with the returned value. Reads the file for the
  /// second time.
  std::string_view write_to(extend::trace_writer& writer);

 private:
  std::FILE* file_;
  std::filesystem::path path_;
  std::string damage_;
  std::unique_ptr<detail::torch_history> history_;
};

}  // namespace memprof::inline MEMPROF_ABI
