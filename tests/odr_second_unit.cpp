// Linked into every test together with odr.cpp: whatever the umbrella defines must survive being there twice.
#include <memprof/memprof.hpp>
