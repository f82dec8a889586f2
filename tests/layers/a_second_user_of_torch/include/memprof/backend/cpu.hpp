// expected: backend/cpu.hpp:3: only backend/torch.hpp may include <c10/core/Allocator.h>
#pragma once
#include <c10/core/Allocator.h>
