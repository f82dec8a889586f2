// oneTBB: each call of the body may be on another of its threads.
#include "work.hpp"

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/parallel_for.h>

#include <cstddef>

int main() {
  auto capture = memprof::begin_capture();
  {
    auto scope = memprof::track_operation<"forward">();
    const memprof::operation_handle forward = memprof::current_operation();
    oneapi::tbb::parallel_for(oneapi::tbb::blocked_range<int>{0, 100}, [&](const oneapi::tbb::blocked_range<int>& rows) {
      auto adopted = memprof::adopt_operation(forward);
      for (int row = rows.begin(); row != rows.end(); ++row) work_on(10);
    });
  }
  capture.end();
  print_bytes(capture.profile(), "forward");
}
