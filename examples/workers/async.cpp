// Tasks of std::async: the handle is captured by each of them.
#include "work.hpp"

#include <future>
#include <vector>

int main() {
  auto capture = memprof::begin_capture();
  {
    auto scope = memprof::track_operation<"forward">();
    const memprof::operation_handle forward = memprof::current_operation();
    std::vector<std::future<void>> tasks;
    for (int task = 0; task < 4; ++task) {
      tasks.push_back(std::async(std::launch::async, [forward] {
        auto adopted = memprof::adopt_operation(forward);
        work_on(1000);
      }));
    }
    for (std::future<void>& task : tasks) task.get();
  }
  capture.end();
  print_bytes(capture.profile(), "forward");
}
