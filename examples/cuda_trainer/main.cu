// A two-layer perceptron trained by plain kernels: weights by cudaMalloc, gradients as parts of one buffer, activations by
// cudaMallocAsync on one stream, batches copied from pinned memory on another. memprof sees all of it by one line.
//
//   nvcc -std=c++20 -O2 -Iinclude -diag-suppress 1835,2189,3189 examples/cuda_trainer/main.cu -o cuda_trainer && ./cuda_trainer
#include <memprof/backend/cuda.hpp>
#include <memprof/memprof.hpp>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr int batch = 128;
constexpr int inputs = 784;
constexpr int hidden = 1024;
constexpr int classes = 10;
constexpr int steps = 20;

void require(cudaError_t result) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "cuda_trainer: %s\n", cudaGetErrorString(result));
  std::exit(1);
}

// --- kernels -------------------------------------------------------------------------------------------------------------

/// out[rows x columns] = a[rows x inner] b[inner x columns], where each operand may be stored transposed.
__global__ void multiply(float* out, const float* a, const float* b, int rows, int inner, int columns, bool a_transposed,
                         bool b_transposed) {
  const int index = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (index >= rows * columns) return;
  const int row = index / columns;
  const int column = index % columns;
  float sum = 0;
  for (int at = 0; at < inner; ++at) {
    const float left = a_transposed ? a[at * rows + row] : a[row * inner + at];
    const float right = b_transposed ? b[column * inner + at] : b[at * columns + column];
    sum += left * right;
  }
  out[index] = sum;
}

__global__ void rectify(float* out, const float* in, int count) {
  const int index = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (index < count) out[index] = in[index] > 0 ? in[index] : 0;
}

/// The gradient through `rectify`, in place.
__global__ void rectify_backward(float* gradient, const float* out, int count) {
  const int index = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (index < count && out[index] <= 0) gradient[index] = 0;
}

/// The gradient of the mean cross-entropy by the logits; a thread for each sample.
__global__ void softmax_gradient(float* gradient, const float* logits, const int* labels) {
  const int sample = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (sample >= batch) return;
  const float* const own = logits + sample * classes;
  float greatest = own[0];
  for (int at = 1; at < classes; ++at) greatest = fmaxf(greatest, own[at]);
  float sum = 0;
  for (int at = 0; at < classes; ++at) sum += expf(own[at] - greatest);
  for (int at = 0; at < classes; ++at) {
    const float probability = expf(own[at] - greatest) / sum;
    gradient[sample * classes + at] = (probability - (at == labels[sample] ? 1.0F : 0.0F)) / batch;
  }
}

__global__ void descend(float* weights, const float* gradient, float rate, int count) {
  const int index = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (index < count) weights[index] -= rate * gradient[index];
}

constexpr int threads = 256;
constexpr int blocks_for(int count) { return (count + threads - 1) / threads; }
constexpr std::size_t bytes_of(int count) { return static_cast<std::size_t>(count) * sizeof(float); }

float* take(int count, cudaStream_t stream) {
  float* taken = nullptr;
  require(cudaMallocAsync(&taken, bytes_of(count), stream));
  return taken;
}

// --- the model -----------------------------------------------------------------------------------------------------------

struct perceptron {
  static constexpr int first_count = inputs * hidden;
  static constexpr int second_count = hidden * classes;

  float* first = nullptr;
  float* second = nullptr;
  float* gradients = nullptr;  ///< of both, in one buffer

  perceptron() {
    require(cudaMalloc(&first, bytes_of(first_count)));
    require(cudaMalloc(&second, bytes_of(second_count)));
    const memprof::block_part parts[] = {
        {0, bytes_of(first_count), {.name = "first.gradient", .category = memprof::category::gradient}},
        {bytes_of(first_count), bytes_of(second_count), {.name = "second.gradient", .category = memprof::category::gradient}}};
    const memprof::cuda_block_parts divided{parts};
    require(cudaMalloc(&gradients, bytes_of(first_count + second_count)));
    memprof::annotate(first, {.name = "first", .category = memprof::category::parameter});
    memprof::annotate(second, {.name = "second", .category = memprof::category::parameter});
    fill(first, first_count);
    fill(second, second_count);
  }
  perceptron(const perceptron&) = delete;
  perceptron& operator=(const perceptron&) = delete;
  ~perceptron() {
    for (float* const each : {first, second, gradients}) cudaFree(each);
  }

  static void fill(float* weights, int count) {
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& value : values) value = 0.02F * (static_cast<float>(std::rand()) / static_cast<float>(RAND_MAX) - 0.5F);
    require(cudaMemcpy(weights, values.data(), bytes_of(count), cudaMemcpyHostToDevice));
  }

  void step(const float* images, const int* labels, cudaStream_t stream) {
    float* summed = nullptr;
    float* activations = nullptr;
    float* logits = nullptr;
    {
      auto scope = memprof::track_operation<"forward">(memprof::category::activation);
      summed = take(batch * hidden, stream);
      activations = take(batch * hidden, stream);
      logits = take(batch * classes, stream);
      multiply<<<blocks_for(batch * hidden), threads, 0, stream>>>(summed, images, first, batch, inputs, hidden, false, false);
      rectify<<<blocks_for(batch * hidden), threads, 0, stream>>>(activations, summed, batch * hidden);
      multiply<<<blocks_for(batch * classes), threads, 0, stream>>>(logits, activations, second, batch, hidden, classes, false,
                                                                    false);
      require(cudaFreeAsync(summed, stream));
    }
    memprof::snapshot("FORWARD_PASS");
    {
      auto scope = memprof::track_operation<"backward">(memprof::category::gradient);
      float* const by_logits = take(batch * classes, stream);
      float* const by_activations = take(batch * hidden, stream);
      softmax_gradient<<<blocks_for(batch), threads, 0, stream>>>(by_logits, logits, labels);
      multiply<<<blocks_for(second_count), threads, 0, stream>>>(gradients + first_count, activations, by_logits, hidden, batch,
                                                                 classes, true, false);
      multiply<<<blocks_for(batch * hidden), threads, 0, stream>>>(by_activations, by_logits, second, batch, classes, hidden,
                                                                   false, true);
      rectify_backward<<<blocks_for(batch * hidden), threads, 0, stream>>>(by_activations, activations, batch * hidden);
      multiply<<<blocks_for(first_count), threads, 0, stream>>>(gradients, images, by_activations, inputs, batch, hidden, true,
                                                                false);
      for (float* const each : {logits, activations, by_logits, by_activations}) require(cudaFreeAsync(each, stream));
    }
    memprof::snapshot("BACKWARD_PASS");
    constexpr float rate = 0.1F;
    descend<<<blocks_for(first_count), threads, 0, stream>>>(first, gradients, rate, first_count);
    descend<<<blocks_for(second_count), threads, 0, stream>>>(second, gradients + first_count, rate, second_count);
    memprof::snapshot("OPTIMIZER_STEP");
  }
};

// --- the data ------------------------------------------------------------------------------------------------------------

/// Random images, in pinned memory, and where the device has them.
struct batch_loader {
  float* host_images = nullptr;
  int* host_labels = nullptr;
  float* images = nullptr;
  int* labels = nullptr;
  cudaStream_t stream = nullptr;
  cudaEvent_t copied = nullptr;
  cudaEvent_t used = nullptr;

  batch_loader() {
    require(cudaMallocHost(&host_images, bytes_of(batch * inputs)));
    require(cudaMallocHost(&host_labels, batch * sizeof(int)));
    require(cudaMalloc(&images, bytes_of(batch * inputs)));
    require(cudaMalloc(&labels, batch * sizeof(int)));
    require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    require(cudaEventCreateWithFlags(&copied, cudaEventDisableTiming));
    require(cudaEventCreateWithFlags(&used, cudaEventDisableTiming));
  }
  batch_loader(const batch_loader&) = delete;
  batch_loader& operator=(const batch_loader&) = delete;
  ~batch_loader() {
    cudaFreeHost(host_images);
    cudaFreeHost(host_labels);
    cudaFree(images);
    cudaFree(labels);
    cudaEventDestroy(copied);
    cudaEventDestroy(used);
    cudaStreamDestroy(stream);
  }

  /// Has `consumer` wait for the next batch.
  void load_for(cudaStream_t consumer) {
    require(cudaEventSynchronize(copied));  // the last copy has read the host's memory
    for (int at = 0; at < batch * inputs; ++at) host_images[at] = static_cast<float>(std::rand() % 256) / 256.0F;
    for (int at = 0; at < batch; ++at) host_labels[at] = std::rand() % classes;
    require(cudaStreamWaitEvent(stream, used, 0));
    require(cudaMemcpyAsync(images, host_images, bytes_of(batch * inputs), cudaMemcpyHostToDevice, stream));
    require(cudaMemcpyAsync(labels, host_labels, batch * sizeof(int), cudaMemcpyHostToDevice, stream));
    require(cudaEventRecord(copied, stream));
    require(cudaStreamWaitEvent(consumer, copied, 0));
  }
  void end_use(cudaStream_t consumer) { require(cudaEventRecord(used, consumer)); }
};

}  // namespace

int main() {
  auto capture = memprof::begin_capture<memprof::cuda_backend>();
  if (cudaFree(nullptr) != cudaSuccess) {
    std::puts("cuda_trainer: no CUDA device");
    return 0;
  }
  {
    cudaStream_t stream = nullptr;
    require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    perceptron model;
    memprof::snapshot("MODEL_CREATION");
    batch_loader loader;
    memprof::snapshot("LOADER_CREATION");
    for (int step = 0; step < steps; ++step) {
      loader.load_for(stream);
      model.step(loader.images, loader.labels, stream);
      loader.end_use(stream);
    }
    require(cudaStreamSynchronize(stream));
    require(cudaGetLastError());
    require(cudaStreamDestroy(stream));
  }
  capture.end();
  memprof::print_memory_usage();
}
