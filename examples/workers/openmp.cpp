// OpenMP: the handle is shared by the threads of the region. The guard is outside the loop, so it costs two events a thread.
#include "work.hpp"

int main() {
  auto capture = memprof::begin_capture();
  {
    auto scope = memprof::track_operation<"forward">();
    const memprof::operation_handle forward = memprof::current_operation();
#pragma omp parallel num_threads(4)
    {
      auto adopted = memprof::adopt_operation(forward);
#pragma omp for
      for (int row = 0; row < 100; ++row) work_on(10);
    }
  }
  capture.end();
  print_bytes(capture.profile(), "forward");
}
