// What a program meets that sets _GLIBCXX_USE_CXX11_ABI to what libtorch was not built with.
#include <memprof/backend/torch/version.hpp>
