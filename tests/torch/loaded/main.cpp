#include <cstdio>

#include <dlfcn.h>

int main(int, char** arguments) {
  void* const module = ::dlopen(arguments[1], RTLD_NOW);
  if (module == nullptr) {
    std::fprintf(stderr, "%s\n", ::dlerror());
    return 1;
  }
  auto* const captures_are_right = reinterpret_cast<bool (*)()>(::dlsym(module, "captures_are_right"));
  return captures_are_right != nullptr && captures_are_right() ? 0 : 1;
}
