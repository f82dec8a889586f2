// expected: toolkit/misc/parts.hpp:1: the folder toolkit/misc/ is in no layer
#pragma once
