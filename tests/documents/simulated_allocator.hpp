#pragma once

// A request to a device that is simulated, and its options.
inline memprof::memory_space space{"cuda:0"};
inline memprof::caching_allocator_options options;
inline std::int64_t bytes;
inline std::uint64_t stream;
struct out_of_memory {
  explicit out_of_memory(const memprof::failed_allocation&);
};
