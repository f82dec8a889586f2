#include <memprof/config.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/toolkit/estimate/exact_count.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI::detail {

void exact_count::refuse() {
  raise("the estimate does not fit 63 bits: a size is too large (bytes are products of up to four of them)");
}

void require_positive(std::int64_t value, std::string_view name) {
  if (value >= 1) return;
  raise(std::string{name} + " is " + std::to_string(value) + ", but must be at least 1");
}

void require_divides(std::int64_t parts, std::string_view name_of_parts, std::int64_t whole, std::string_view name_of_whole) {
  if (whole % parts == 0) return;
  raise(std::string{name_of_parts} + " " + std::to_string(parts) + " does not divide " + std::string{name_of_whole} + " " +
        std::to_string(whole));
}

}  // namespace memprof::inline MEMPROF_ABI::detail
