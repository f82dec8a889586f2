// expected: utilities/misc.hpp:1: the folder utilities/ is in no layer
#pragma once
