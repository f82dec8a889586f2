// What a program meets whose libtorch is too old: TORCH_HEADER is one of the two headers that it may include first.
#include TORCH_HEADER
