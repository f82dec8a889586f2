#include "ample_stack.hpp"

#include <pthread.h>
#include <sys/resource.h>
#include <cstddef>
#include <functional>

namespace memprof_tool {
namespace {

struct call {
  const std::function<int()>& run;
  int result = 0;
};

void* make_call(void* argument) {
  call& made = *static_cast<call*>(argument);
  made.result = made.run();
  return nullptr;
}

}  // namespace

int with_ample_stack(const std::function<int()>& run) {
  constexpr std::size_t enough = std::size_t{1} << 20, ample = std::size_t{8} << 20;
  rlimit limit{};
  if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= enough) return run();
  call made{run};
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return run();
  pthread_t thread{};
  const bool is_begun =
      pthread_attr_setstacksize(&attributes, ample) == 0 && pthread_create(&thread, &attributes, make_call, &made) == 0;
  pthread_attr_destroy(&attributes);
  if (!is_begun) return run();
  pthread_join(thread, nullptr);
  return made.result;
}

}  // namespace memprof_tool
