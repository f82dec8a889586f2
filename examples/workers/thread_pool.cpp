// A pool whose threads outlive the work: `submit` takes the handle, so that no task has to know of it.
#include "work.hpp"

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <queue>
#include <thread>
#include <utility>
#include <vector>

namespace {

class thread_pool {
 public:
  explicit thread_pool(int threads) {
    for (int thread = 0; thread < threads; ++thread) threads_.emplace_back([this] { run(); });
  }
  thread_pool(const thread_pool&) = delete;
  thread_pool& operator=(const thread_pool&) = delete;
  ~thread_pool() {
    {
      const std::lock_guard lock{mutex_};
      is_closed_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  void submit(std::function<void()> work) {
    {
      const std::lock_guard lock{mutex_};
      tasks_.push({std::move(work), memprof::current_operation()});
      ++unfinished_;
    }
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [this] { return unfinished_ == 0; });
  }

 private:
  struct task {
    std::function<void()> work;
    memprof::operation_handle submitted_by;
  };

  void run() {
    std::unique_lock lock{mutex_};
    while (true) {
      changed_.wait(lock, [this] { return is_closed_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      const task next = std::move(tasks_.front());
      tasks_.pop();
      lock.unlock();
      {
        auto adopted = memprof::adopt_operation(next.submitted_by);
        next.work();
      }
      lock.lock();
      --unfinished_;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::queue<task> tasks_;
  std::size_t unfinished_ = 0;
  bool is_closed_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace

int main() {
  thread_pool pool{2};
  auto capture = memprof::begin_capture();
  for (int step = 0; step < 3; ++step) {
    auto scope = memprof::track_operation<"step">();
    {
      auto loading = memprof::track_operation<"load">();
      for (int task = 0; task < 8; ++task) pool.submit([] { work_on(100); });
      pool.wait();
    }
    auto forward = memprof::track_operation<"forward">();
    for (int task = 0; task < 8; ++task) pool.submit([] { work_on(1000); });
    pool.wait();
  }
  capture.end();
  print_bytes(capture.profile(), "step/load");
  print_bytes(capture.profile(), "step/forward");
}
