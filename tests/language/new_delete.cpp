// Compiled twice into one program, which the linker must refuse.
#include <memprof/backend/new_delete.hpp>
