#pragma once

// A kernel and its tensors.
inline float *a, *b, *c;
void multiply(const float*, const float*, float*);
