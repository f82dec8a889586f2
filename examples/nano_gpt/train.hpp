#pragma once

#include <nano_gpt/corpus.hpp>
#include <nano_gpt/element.hpp>
#include <nano_gpt/options.hpp>

#include <memprof/trace/dtype.hpp>

namespace nano_gpt {

/// Trains a model with elements T according to `options` and prints the result. There are two versions of this function:
/// train.cpp is train_plain.cpp plus profiling, in a capture that its caller has begun and that it ends.
template <class T>
void train(const options& options, const corpus& corpus);

/// The same with the element type from the options; float replaces a type that can only be counted.
inline void train(const options& options, const corpus& corpus) {
  switch (options.dtype) {
    case memprof::dtype::bfloat16: return train<bf16>(options, corpus);
    case memprof::dtype::float16: return train<fp16>(options, corpus);
    default: return train<float>(options, corpus);
  }
}

}  // namespace nano_gpt
