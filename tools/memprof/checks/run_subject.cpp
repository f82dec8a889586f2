// A program that `memprof run` records: what it allocates is known by arithmetic. It uses nothing of the C++ library, which would
// allocate for itself. run_subject MODE [ARGUMENT]
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));

void* keep(void* block) {
  asm volatile("" : "+r"(block) : : "memory");
  return block;
}

void* early = nullptr;
[[gnu::constructor]] void allocate_early() { early = keep(malloc(111)); }
[[gnu::destructor]] void free_early() { free(early); }

/// 5,000 and 70,000 bytes, which live together, from three calls that a stack must have in order.
[[gnu::noinline]] void* innermost(size_t bytes) { return keep(malloc(bytes)); }
[[gnu::noinline]] void* middle(size_t bytes) { return keep(innermost(bytes)); }
[[gnu::noinline]] void outermost() {
  void* const small = middle(5000);
  void* const large = middle(70'000);
  free(small);
  free(large);
}

/// 1,000 blocks of 1 to 1,000 bytes, one after the other: 500,500 bytes.
void churn() {
  for (size_t bytes = 1; bytes <= 1000; ++bytes) free(keep(malloc(bytes)));
}

/// 4,095 bytes in 12 blocks, of which the last has 2,048.
void family() {
  free(keep(malloc(1)));
  free(keep(calloc(2, 1)));
  free(keep(realloc(nullptr, 4)));
  free(keep(reallocarray(nullptr, 4, 2)));
  void* aligned = nullptr;
  if (posix_memalign(&aligned, 256, 16) == 0) free(keep(aligned));
  free(keep(aligned_alloc(64, 32)));
  free(keep(memalign(128, 64)));
  free(keep(valloc(128)));
  free(keep(realloc(keep(malloc(256)), 512)));
  const volatile size_t too_much = size_t{1} << 60;
  void* const block = keep(malloc(1024));
  if (realloc(block, too_much) == nullptr) free(block);
  free(keep(malloc(2048)));
}

void* in_thread(void*) {
  churn();
  return nullptr;
}

/// 70,000 bytes, by a thread with the least stack that the C library gives.
int small_stack() {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, static_cast<size_t>(sysconf(_SC_THREAD_STACK_MIN)));
  pthread_t started;
  const auto work = [](void*) -> void* {
    free(middle(70'000));
    return nullptr;
  };
  return pthread_create(&started, &attributes, work, nullptr) == 0 ? pthread_join(started, nullptr) : 1;
}

int threads(int count) {
  for (int done = 0; done < count; done += 100) {
    pthread_t started[100];
    for (pthread_t& each : started) {
      if (pthread_create(&each, nullptr, in_thread, nullptr) != 0) return 1;
    }
    for (const pthread_t each : started) pthread_join(each, nullptr);
  }
  return 0;
}

int forks(int count) {
  for (int done = 0; done < count; ++done) {
    const pid_t child = fork();
    if (child == 0) {
      free(keep(malloc(7777)));
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) return 1;
  }
  return 0;
}

/// 20 children that `pthread_atfork` does not know, each of which allocates more than its parent and ends in another way.
int bare_forks() {
  churn();
  for (int done = 0; done < 20; ++done) {
    const long child = syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr);
    if (child == 0) {
      free(keep(malloc(7777)));
      for (int round = 0; round < done; ++round) churn();
      if (done % 3 == 0) _exit(0);
      if (done % 3 == 1) exit(0);
      execl("/bin/true", "true", nullptr);
    }
    int status = 0;
    waitpid(static_cast<pid_t>(child), &status, 0);
    if (status != 0) return 1;
  }
  churn();
  return 0;
}

volatile sig_atomic_t handled = 0;

int interrupted() {
  signal(SIGALRM, [](int) { handled = handled + 1; });
  const itimerval often{{0, 100}, {0, 100}};
  setitimer(ITIMER_REAL, &often, nullptr);
  for (int round = 0; round < 200; ++round) churn();
  const itimerval never{};
  setitimer(ITIMER_REAL, &never, nullptr);
  return handled > 0 ? 0 : 1;
}

int limited(rlim_t bytes, int rounds) {
  const rlimit limit{bytes, bytes};
  setrlimit(RLIMIT_FSIZE, &limit);
  for (int round = 0; round < rounds; ++round) churn();
  return 0;
}

int closed() {
  for (int number = 3; number < 300; ++number) close(number);
  for (int round = 0; round < 300; ++round) churn();
  const int first = open("/proc/self/status", O_RDONLY);
  return first < 0 ? 1 : 0;
}

/// A mapping of some pages, anonymous without a file.
unsigned char* map_pages(size_t pages, void* at = nullptr, int file = -1) {
  const int flags = MAP_PRIVATE | (at == nullptr ? 0 : MAP_FIXED) | (file < 0 ? MAP_ANONYMOUS : 0);
  void* const made = mmap(at, pages * page, PROT_READ | PROT_WRITE, flags, file, 0);
  if (made == MAP_FAILED) abort();
  return static_cast<unsigned char*>(made);
}

/// 53 pages in 14 blocks, all of which end; at most 16 pages at a time.
int mappings() {
  unsigned char* const whole = map_pages(16);
  munmap(whole + 4 * page, 8 * page - 1);  // leaves two blocks of 4
  munmap(whole, 16 * page);
  void* moved = mmap64(nullptr, 4 * page - 7, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  moved = mremap(moved, 4 * page, 8 * page, MREMAP_MAYMOVE);
  moved = mremap(moved, 8 * page, 2 * page, 0);
  munmap(moved, 2 * page);
  unsigned char* const covered = map_pages(4);
  map_pages(1, covered + page);  // leaves blocks of 1 and 2 pages beside it
  const int file = open("/proc/self/exe", O_RDONLY);
  map_pages(1, covered + 2 * page, file);  // leaves a block of 1
  munmap(covered, 4 * page);
  unsigned char* const of_file = map_pages(1, nullptr, file);
  void* const of_file_too = mremap(of_file, page, 2 * page, MREMAP_MAYMOVE);
  munmap(of_file_too, 2 * page);
  unsigned char* const fixed = map_pages(2);
  void* const target = map_pages(2);
  if (mremap(fixed, 2 * page, 2 * page, MREMAP_MAYMOVE | MREMAP_FIXED, target) != target) return 1;
  errno = 0;
  if (munmap(fixed + 1, page) == 0 || errno != EINVAL || munmap(target, 0) == 0) return 1;
  if (mmap(nullptr, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED) return 1;
  return munmap(target, 2 * page);
}

void* map_often(void*) {
  for (int round = 0; round < 1000; ++round) munmap(map_pages(1), page);
  return nullptr;
}

/// 8,000 pages in as many blocks, from 8 threads that give addresses to each other.
int mapping_threads() {
  pthread_t started[8];
  for (pthread_t& each : started) {
    if (pthread_create(&each, nullptr, map_often, nullptr) != 0) return 1;
  }
  for (const pthread_t each : started) pthread_join(each, nullptr);
  return 0;
}

/// 20 children, each with 3 pages of its own, which also unmaps what it inherited.
int mapping_forks() {
  unsigned char* const inherited = map_pages(2);
  for (int done = 0; done < 20; ++done) {
    const pid_t child = fork();
    if (child == 0) {
      munmap(inherited, 2 * page);
      munmap(map_pages(3), 3 * page);
      exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) return 1;
  }
  return munmap(inherited, 2 * page);
}

}  // namespace

int main(int count, char** words) {
  const char* const mode = count > 1 ? words[1] : "";
  const auto is = [mode](const char* name) { return strcmp(mode, name) == 0; };
  if (is("family") || is("standard")) family();
  if (is("family")) free(keep(pvalloc(1)));  // a page, which valgrind refuses
  if (is("stacks")) outermost();
  if (is("stacks_and_kill")) {
    middle(70'000);
    raise(SIGKILL);
  }
  if (is("threads")) return threads(2000);
  if (is("small_stack")) return small_stack();
  if (is("forks")) return forks(50);
  if (is("bare_forks")) return bare_forks();
  if (is("interrupted")) return interrupted();
  if (is("limited")) return limited(300'000, 300);
  if (is("limited_to_0")) return limited(0, 1);
  if (is("limited_to_a_page")) return limited(4096, 1);
  if (is("closed")) return closed();
  if (is("mappings")) return mappings();
  if (is("mapping_threads")) return mapping_threads();
  if (is("mapping_forks")) return mapping_forks();
  if (is("unshare")) return unshare(CLONE_NEWUSER) == 0 ? 0 : 1;
  if (is("status")) return 7;
  if (is("leave")) {
    churn();
    _exit(3);
  }
  if (is("kill")) {
    keep(malloc(1234));
    raise(SIGKILL);
  }
  if (is("wait")) {
    puts("ready");
    fflush(stdout);
    pause();
  }
  if (is("exec")) {
    churn();
    execl(words[0], words[0], "family", nullptr);
  }
  if (is("leaves_a_child")) {
    int ready[2];
    if (pipe(ready) != 0) return 1;
    if (fork() == 0) {
      keep(malloc(1234));
      (void)!write(ready[1], "", 1);
      close(1);  // so that nobody waits for more
      close(2);
      sleep(5);
      _exit(0);
    }
    char byte = 0;
    return read(ready[0], &byte, 1) == 1 ? 0 : 1;
  }
  if (is("environment")) return system("env");
  if (is("words")) {
    for (int index = 2; index < count; ++index) puts(words[index]);
  }
  return 0;
}
