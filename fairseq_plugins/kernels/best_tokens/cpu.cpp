// The log-probabilities of the first tokens of a vocabulary and of the best of the others, on CPUs: a pass over the logits
// for the greatest ones and a pass for the sum of the softmax, where log_softmax and topk read and write whole tables.
// Rows are split over the threads.

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/utils/pybind.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <type_traits>

#include "cpu/checks.h"
#include "cpu/vectors.h"

namespace {

using at::Tensor;
using fairseq_plugins::check;
using fairseq_plugins::check_dimensions;
using fairseq_plugins::check_tensor;
using fairseq_plugins::for_each_vector;
using fairseq_plugins::load;
using fairseq_plugins::Vector;
using fairseq_plugins::Whole;

constexpr float kLeast = -std::numeric_limits<float>::infinity();
constexpr Whole<float> kWhole;
constexpr int64_t kWidth = kWhole;

// The `size` greatest numbers of those that were seen, the greatest first, and where they are.
struct Best {
  float* values;
  int64_t* places;
  int64_t size, seen = 0;

  // Of the greatest the last one, once there are so many.
  float threshold() const { return values[size - 1]; }

  void take(float value, int64_t place) {
    if (seen == size && !(value > threshold())) return;
    int64_t at = seen < size ? seen++ : size - 1;
    for (; at > 0 && value > values[at - 1]; at--) values[at] = values[at - 1], places[at] = places[at - 1];
    values[at] = value, places[at] = place;
  }
};

// Puts the numbers of a row from `first` on into `best`. Most vectors have none that is greater than the last of the best.
void find_best(const float* row, int64_t first, int64_t end, Best& best) {
  int64_t k = first;
  for (; k < std::min(first + best.size, end); k++) best.take(row[k], k);
  if (best.size == 0) return;
  for (; k + 4 * kWidth <= end; k += 4 * kWidth) {
    const Vector<float> least(best.threshold());
    const auto above = (load(row + k, kWhole) > least) | (load(row + k + kWidth, kWhole) > least) |
        (load(row + k + 2 * kWidth, kWhole) > least) | (load(row + k + 3 * kWidth, kWhole) > least);
    if (above.zero_mask() == (1 << kWidth) - 1) continue;
    for (int64_t i = k; i < k + 4 * kWidth; i++) best.take(row[i], i);
  }
  for (; k < end; k++) best.take(row[k], k);
}

// The logarithm of the sum of exp(x); NaN where one of them is, or all are -inf.
float log_of_sum(const float* row, int64_t size, float largest) {
  Vector<float> sum(0.f);
  const Vector<float> shift(largest);
  for_each_vector<float>(size, [&](int64_t k, auto n) {
    auto term = fairseq_plugins::exp(load(row + k, n) - shift);
    // Beyond the last number of a row nothing is added.
    if constexpr (!std::is_same_v<decltype(n), Whole<float>>) term = Vector<float>::set(Vector<float>(0.f), term, n);
    sum = sum + term;
  });
  return largest + std::log(fairseq_plugins::sum_of(sum));
}

// logits (B, V) -> log-probabilities (B, F + K) and tokens (B, F + K)
std::tuple<Tensor, Tensor> best_tokens(const Tensor& given, int64_t first, int64_t count) {
  check_dimensions("logits", given, 2);
  check_tensor("logits", given, given.sizes(), at::kFloat);
  const int64_t rows = given.size(0), size = given.size(1), width = first + count;
  check(first >= 0 && count >= 0 && width <= size, "there are no ", first, " + ", count, " tokens among ", size);
  const Tensor logits = given.contiguous();
  const Tensor log_probabilities = at::empty({rows, width}, logits.options());
  const Tensor tokens = at::empty({rows, width}, logits.options().dtype(at::kLong));
  const float* from = logits.const_data_ptr<float>();
  float* to = log_probabilities.data_ptr<float>();
  int64_t* places = tokens.data_ptr<int64_t>();
  at::parallel_for(0, rows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; b++) {
      const float* row = from + b * size;
      float* values = to + b * width;
      for (int64_t k = 0; k < first; k++) values[k] = row[k], places[b * width + k] = k;
      Best best{values + first, places + b * width + first, count};
      find_best(row, first, size, best);
      float largest = count > 0 ? values[first] : kLeast;
      for (int64_t k = 0; k < (count > 0 ? first : size); k++) largest = std::max(largest, row[k]);
      const float sum = log_of_sum(row, size, largest);
      for (int64_t k = 0; k < width; k++) values[k] -= sum;
    }
  });
  return {log_probabilities, tokens};
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  module.def("best_tokens", &best_tokens, pybind11::call_guard<pybind11::gil_scoped_release>());
}
