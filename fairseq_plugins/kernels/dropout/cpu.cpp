// Dropout on CPUs, alone or of a ReLU. What is dropped follows from a seed: the backward pass draws the same again, and no
// mask is ever kept.

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/utils/pybind.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <tuple>

#include "cpu/checks.h"

namespace {

using at::Tensor;
using fairseq_plugins::check;
using fairseq_plugins::check_tensor;

// Numbers that are drawn at once, of 16 bits, and elements that have a stream of them to themselves: whatever the number
// of threads, an element has the same.
constexpr int64_t group = 32, block = 1 << 14;

// xoshiro256++ (Blackman and Vigna, 2021), eight generators side by side.
class Generators {
 public:
  explicit Generators(uint64_t seed) {
    // SplitMix64, as its authors have it.
    for (auto& row : state_) {
      for (uint64_t& word : row) {
        uint64_t z = seed += 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        word = z ^ (z >> 31);
      }
    }
  }

  // Loops over the lanes alone, which compilers make vectors of.
  void draw(uint16_t* numbers) {
    auto& [a, b, c, d] = state_;
    uint64_t words[lanes];
    for (int i = 0; i < lanes; i++) words[i] = rotated(a[i] + d[i], 23) + a[i];
    std::memcpy(numbers, words, sizeof(words));
    for (int i = 0; i < lanes; i++) {
      const uint64_t shifted = b[i] << 17;
      c[i] ^= a[i];
      d[i] ^= b[i];
      b[i] ^= c[i];
      a[i] ^= d[i];
      c[i] ^= shifted;
      d[i] = rotated(d[i], 45);
    }
  }

 private:
  static constexpr int lanes = group / 4;

  static uint64_t rotated(uint64_t x, int by) { return (x << by) | (x >> (64 - by)); }

  uint64_t state_[4][lanes];
};

// x, or its ReLU, in which what is not a number stays so.
template <typename T, bool is_relu>
inline T activation(T x) {
  return is_relu && x < T(0) ? T(0) : x;
}

// to = from times 0 or the scale, by numbers of a generator. Everything is passed by value, and no two pointers overlap: else the loops are no vectors.
template <typename T, bool is_relu>
void drop_block(const T* __restrict from, T* __restrict to, int64_t size, int32_t dropped, T scale, uint64_t seed) {
  Generators generators(seed);
  for (int64_t start = 0; start < size; start += group) {
    uint16_t numbers[group];
    T factors[group];
    generators.draw(numbers);
    for (int64_t k = 0; k < group; k++) factors[k] = static_cast<int32_t>(numbers[k]) >= dropped ? scale : T(0);
    // The first loop has a number of turns that the compiler knows.
    if (size - start >= group) {
      for (int64_t k = 0; k < group; k++) to[start + k] = factors[k] * activation<T, is_relu>(from[start + k]);
    } else {
      for (int64_t k = 0; k < size - start; k++) to[start + k] = factors[k] * activation<T, is_relu>(from[start + k]);
    }
  }
}

template <typename T, bool is_relu>
void drop(const T* from, T* to, int64_t size, int32_t dropped, T scale, uint64_t seed) {
  at::parallel_for(0, (size + block - 1) / block, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; i++) {
      // Far from the seeds of the other blocks, each of which is followed by as many as there are words.
      const uint64_t of_block = seed + 0xd1342543de82ef95u * static_cast<uint64_t>(i);
      const int64_t start = i * block;
      drop_block<T, is_relu>(from + start, to + start, std::min(block, size - start), dropped, scale, of_block);
    }
  });
}

Tensor dropped(const Tensor& given_x, int64_t dropped, double scale, int64_t seed, bool is_relu) {
  check_tensor("x", given_x, given_x.sizes(), given_x.scalar_type());
  check(dropped >= 0 && dropped < (1 << 16), "of 65536 numbers not ", dropped, " can be dropped");
  const Tensor x = given_x.contiguous();
  const Tensor y = at::empty_like(x);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "dropout", [&] {
    const auto* from = x.const_data_ptr<scalar_t>();
    auto* to = y.data_ptr<scalar_t>();
    const auto factor = static_cast<scalar_t>(scale);
    if (is_relu) {
      drop<scalar_t, true>(from, to, x.numel(), static_cast<int32_t>(dropped), factor, static_cast<uint64_t>(seed));
    } else {
      drop<scalar_t, false>(from, to, x.numel(), static_cast<int32_t>(dropped), factor, static_cast<uint64_t>(seed));
    }
  });
  return y;
}

// A seed of PyTorch's generator.
int64_t draw_seed() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  return static_cast<int64_t>(at::check_generator<at::CPUGeneratorImpl>(generator)->random64());
}

// to = from times the scale where the output is above 0, else 0.
template <typename T>
void multiply_kept(const T* __restrict from, const T* __restrict output, T* __restrict to, int64_t size, T scale) {
  for (int64_t k = 0; k < size; k++) to[k] = from[k] * (output[k] > T(0) ? scale : T(0));
}

// The gradient of what has come out as y: the scale where y is above 0, else 0.
Tensor relu_backward(const Tensor& given_gradient, const Tensor& y, double scale) {
  check_tensor("y", y, y.sizes(), y.scalar_type());
  check_tensor("gradient", given_gradient, y.sizes(), y.scalar_type());
  check(y.is_contiguous(), "y must be contiguous");
  const Tensor gradient = given_gradient.contiguous();
  const Tensor result = at::empty_like(y);
  AT_DISPATCH_FLOATING_TYPES(y.scalar_type(), "relu_dropout_backward", [&] {
    const auto* from = gradient.const_data_ptr<scalar_t>();
    const auto* output = y.const_data_ptr<scalar_t>();
    auto* to = result.data_ptr<scalar_t>();
    const auto factor = static_cast<scalar_t>(scale);
    at::parallel_for(0, y.numel(), block, [&](int64_t first, int64_t last) {
      multiply_kept(from + first, output + first, to + first, last - first, factor);
    });
  });
  return result;
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  module.def("draw_seed", &draw_seed, pybind11::call_guard<pybind11::gil_scoped_release>());
  module.def("dropped", &dropped, pybind11::call_guard<pybind11::gil_scoped_release>());
  module.def("relu_backward", &relu_backward, pybind11::call_guard<pybind11::gil_scoped_release>());
}
