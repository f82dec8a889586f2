#pragma once

/* The headers of CUDA's runtime that come with torch's wheels include this file and host_defines.h, which come with CUDA's compiler.
 * Where those are missing, these stand in: for a C++ compiler, which needs nothing of this one. */
