#include <memprof/toolkit/analysis/cuda_alloc_conf.hpp>

#include <catch2/catch_test_macros.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace memprof_tests::analysis_cuda_alloc_conf {

using memprof::caching_allocator_options;
using memprof::parse_cuda_alloc_conf;

namespace {

constexpr std::int64_t mib = 1 << 20;

/// The message with which the text is refused; empty if it is accepted.
std::string refusal(const std::string& text) {
  try {
    (void)parse_cuda_alloc_conf(text);
  } catch (const memprof::error& fault) {
    return fault.what();
  }
  return {};
}

bool is_in(std::string_view part, const std::string& text) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("alloc conf: empty text stands for PyTorch's defaults") {
  const caching_allocator_options options = parse_cuda_alloc_conf("  ");
  CHECK(options.max_split_size == caching_allocator_options::unlimited);
  CHECK(options.max_non_split_rounding == 20 * mib);
  CHECK(options.large_segment_size == 20 * mib);
  CHECK(options.garbage_collection_threshold == 0);
  CHECK(options.per_process_memory_fraction == 1);
  CHECK_FALSE(options.expandable_segments);
  CHECK(options.roundup_power2_divisions == std::array<std::int64_t, 16>{});
  CHECK(options.capacity == 0);
}

// Text and expected numbers are those of PyTorch's own test, c10/test/core/AllocatorConfig_test.cpp.
TEST_CASE("alloc conf: the text of PyTorch's own test means what it means there") {
  const caching_allocator_options options = parse_cuda_alloc_conf(
      "max_split_size_mb:40,max_non_split_rounding_mb:30,garbage_collection_threshold:0.5,"
      "roundup_power2_divisions:[64:8,128:2,256:4,512:2,1024:4,>:1],expandable_segments:True,pinned_use_background_threads:True");
  CHECK(options.max_split_size == 40 * mib);
  CHECK(options.max_non_split_rounding == 30 * mib);
  CHECK(options.large_segment_size == 20 * mib);
  CHECK(options.garbage_collection_threshold == 0.5);
  CHECK(options.expandable_segments);
  constexpr std::array<std::pair<std::int64_t, std::int64_t>, 9> divisions_of{
      {{32, 8}, {64, 8}, {128, 2}, {256, 4}, {512, 2}, {1024, 4}, {2048, 1}, {4096, 1}, {8192, 1}}};
  for (const auto& [megabytes, divisions] : divisions_of) {
    INFO(megabytes << " MB");
    CHECK(memprof::detail::roundup_divisions(options, megabytes * mib) == divisions);
  }
}

TEST_CASE("alloc conf: one number of divisions is that of all sizes, and sizes that a list leaves out are not divided") {
  CHECK(parse_cuda_alloc_conf("roundup_power2_divisions:4").roundup_power2_divisions ==
        std::array<std::int64_t, 16>{4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4});
  CHECK(parse_cuda_alloc_conf("roundup_power2_divisions:[256:1,512:2,>:8]").roundup_power2_divisions ==
        std::array<std::int64_t, 16>{1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 8, 8, 8, 8, 8, 8});
  CHECK(parse_cuda_alloc_conf("roundup_power2_divisions:[4:2,16:8]").roundup_power2_divisions ==
        std::array<std::int64_t, 16>{2, 2, 2, 0, 8});
  CHECK(parse_cuda_alloc_conf("roundup_power2_divisions:[1048576:16]").roundup_power2_divisions.back() == 16);
}

TEST_CASE("alloc conf: spaces mean nothing, and of a key that comes twice the last counts") {
  const caching_allocator_options options = parse_cuda_alloc_conf(
      " max_split_size_mb : 64 , large_segment_size_mb:32,\tmax_split_size_mb:128,"
      "per_process_memory_fraction:0.25, expandable_segments:False, backend:native");
  CHECK(options.max_split_size == 128 * mib);
  CHECK(options.large_segment_size == 32 * mib);
  CHECK(options.per_process_memory_fraction == 0.25);
  CHECK_FALSE(options.expandable_segments);
}

TEST_CASE("alloc conf: sizes that no byte count can hold are no limit") {
  CHECK(parse_cuda_alloc_conf("max_split_size_mb:9223372036854775807").max_split_size == caching_allocator_options::unlimited);
}

TEST_CASE("alloc conf: keys that do not change what is reserved are accepted with any value") {
  const caching_allocator_options options = parse_cuda_alloc_conf(
      "release_lock_on_cudamalloc:True,pinned_num_register_threads:8,pinned_reserve_segment_size_mb:64,pinned_list:[1:2,3],"
      "graph_capture_record_stream_reuse:True,throw_on_cudamalloc_oom:False,max_split_size_mb:100");
  CHECK(options.max_split_size == 100 * mib);
}

TEST_CASE("alloc conf: an unknown key is named, with those there are") {
  const std::string what = refusal("max_split_size_mb:64,max_split_mb:32");
  CHECK(is_in("'max_split_mb' is unknown", what));
  CHECK(is_in("max_split_size_mb:64,max_split_mb:32", what));
  for (const char* const known : {"expandable_segments", "garbage_collection_threshold", "large_segment_size_mb",
                                  "max_non_split_rounding_mb", "roundup_power2_divisions", "pinned_"}) {
    CHECK(is_in(known, what));
  }
}

TEST_CASE("alloc conf: what is not modelled is refused, with what to do") {
  CHECK(is_in("leave it out", refusal("backend:cudaMallocAsync")));
  CHECK(is_in("leave it out", refusal("expandable_segments_reserve:0.5")));
  CHECK(is_in("leave it out", refusal("throw_on_cudamalloc_oom:True")));
  CHECK(is_in("backend is 'natve'; expected native", refusal("backend:natve")));
}

TEST_CASE("alloc conf: values that cannot be are refused with the key, the value and what it takes") {
  for (const auto& [text, message] : std::array<std::pair<const char*, const char*>, 22>{{
           {"max_split_size_mb:19", "max_split_size_mb is '19'; expected whole MB, at least 20"},
           {"max_split_size_mb:64k", "max_split_size_mb is '64k'"},
           {"max_split_size_mb:-1", "max_split_size_mb is '-1'"},
           {"max_split_size_mb:", "max_split_size_mb is ''"},
           {"max_split_size_mb", "expected ':' at character 18"},
           {"max_split_size_mb:64 max_split_size_mb:64", "expected ',' at character 22"},
           {"max_non_split_rounding_mb:1", "at least 20"},
           {"large_segment_size_mb:10", "at least 11"},
           {"garbage_collection_threshold:0", "over 0"},
           {"garbage_collection_threshold:1", "below 1"},
           {"garbage_collection_threshold:nan", "is 'nan'"},
           {"garbage_collection_threshold:0.8x", "is '0.8x'"},
           {"per_process_memory_fraction:1.5", "over 0 and up to 1"},
           {"expandable_segments:true", "expected True or False"},
           {"roundup_power2_divisions:3", "expected a power of two"},
           {"roundup_power2_divisions:0", "expected a power of two"},
           {"roundup_power2_divisions:[3:2]", "sizes in MB that are powers of two"},
           {"roundup_power2_divisions:[4:3]", "powers of two or 0"},
           {"roundup_power2_divisions:[4]", "expected ':' at character"},
           {"roundup_power2_divisions:[4:2 8:2]", "lacks the closing ']'"},
           {"roundup_power2_divisions:[4:2", "lacks the closing ']'"},
           {"pinned_list:[1,2", "expected ']' at character"},
       }}) {
    INFO(text);
    CHECK(is_in(message, refusal(text)));
  }
}

}  // namespace memprof_tests::analysis_cuda_alloc_conf
