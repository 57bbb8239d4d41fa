// Attention over the channels (Eq. 4 to 6), forward and backward.

#pragma once

#include <cmath>
#include <limits>

#include "layer.h"

namespace fairseq_plugins::multi_channel {

// Eq. 4 to 6 for some rows of one step: fills their output and alpha, zero at padding. `hidden` (C, rows, H) are the outputs
// of the channels; `scores` (C, rows, A), their product with V, become the tanh. Without attention the output is that of the
// one channel.
template <typename S>
void attend(
    const Weights& weights, const Inputs& inputs, int64_t step, int64_t first, int64_t rows, const S* hidden, S* scores,
    Outputs& outputs) {
  using T = Compute<S>;
  const int64_t H = weights.hidden(), C = weights.specification.channels, A = weights.attention();
  const S* x = inputs.projected.const_data_ptr<S>();
  const S* r = A ? weights.score.const_data_ptr<S>() : nullptr;
  std::vector<T> weight(C, T(1));
  for (int64_t row = 0; row < rows; row++) {
    const int64_t place = step * inputs.batch() + first + row;
    S* out = outputs.output.data_ptr<S>() + place * H;
    T* alpha = outputs.alpha.data_ptr<T>() + place * C;
    if (step >= inputs.length(first + row)) {
      std::fill_n(out, H, S(0));
      std::fill_n(alpha, C, T(0));
      continue;
    }
    if (A) {
      T largest = -std::numeric_limits<T>::infinity();
      for (int64_t slot = 0; slot < C; slot++) {
        S* score = scores + (slot * rows + row) * A;
        const S* from_input = x + place * weights.projected() + weights.width();
        Vector<T> e(T(0));
        for_each_vector<T>(A, [&](int64_t k, auto n) {
          const auto value = tangent<T>(load(score + k, n) + load(from_input + k, n));
          store(value, score + k, n);
          e = e + value * load(r + k, n);
        });
        weight[slot] = sum_of<T>(e);
        largest = std::max(largest, weight[slot]);
      }
      T sum = 0;
      for (auto& w : weight) sum += w = std::exp(w - largest);
      for (auto& w : weight) w /= sum;
    }
    std::copy(weight.begin(), weight.end(), alpha);
    for_each_vector<T>(H, [&](int64_t k, auto n) {
      Vector<T> attended(T(0));
      for (int64_t slot = 0; slot < C; slot++) {
        attended = attended + Vector<T>(weight[slot]) * load(hidden + (slot * rows + row) * H + k, n);
      }
      store(attended, out + k, n);
    });
  }
}

// Backward of attend: `scores` become the gradients of what was in tanh, `grad_hidden` (L + T, C, rows, H) gets the share
// of Eq. 4 alone, `grad_projected` (T, B, G + A) the sums over the slots; the gradient of r is added to `grad_score` (A,).
template <typename S>
void attend_backward(
    const Weights& weights, const Inputs& inputs, const Chunk& chunk, const OutputGradients& gradients, const Tensor& alpha,
    Compute<S>* grad_hidden, S* grad_projected, Compute<S>* grad_score) {
  using T = Compute<S>;
  const Specification& layer = weights.specification;
  const int64_t H = weights.hidden(), C = layer.channels, A = weights.attention(), rows = chunk.rows;
  const S* hidden = chunk.hidden.const_data_ptr<S>() + layer.longest_lag() * C * rows * H;
  T* grad_h = grad_hidden + layer.longest_lag() * C * rows * H;
  S* scores = chunk.scores.data_ptr<S>();
  const S* r = A ? weights.score.const_data_ptr<S>() : nullptr;
  const T* grad_alpha = gradients.alpha.defined() ? gradients.alpha.const_data_ptr<T>() : nullptr;
  const Vector<T> one(T(1));
  std::vector<T> grad_e(C);
  for (int64_t step = 0; step < inputs.steps(); step++) {
    for (int64_t row = 0; row < rows; row++) {
      const int64_t place = step * inputs.batch() + chunk.first + row;
      S* grad_input = grad_projected + place * weights.projected() + weights.width();
      if (step >= inputs.length(chunk.first + row) || !gradients.output.defined()) {
        for (int64_t slot = 0; slot < C; slot++) {
          std::fill_n(grad_h + ((step * C + slot) * rows + row) * H, H, T(0));
          std::fill_n(scores + ((step * C + slot) * rows + row) * A, A, S(0));
        }
        std::fill_n(grad_input, A, S(0));
        continue;
      }
      const S* grad = gradients.output.const_data_ptr<S>() + place * H;
      if (!A) {
        copy(grad_h + (step * rows + row) * H, grad, H);
        continue;
      }
      const T* weight = alpha.const_data_ptr<T>() + place * C;
      T mean = 0;
      for (int64_t slot = 0; slot < C; slot++) {
        const int64_t at_slot = ((step * C + slot) * rows + row) * H;
        const Vector<T> w(weight[slot]);
        Vector<T> sum(T(0));
        for_each_vector<T>(H, [&](int64_t k, auto n) {
          const auto g = load(grad + k, n);
          sum = sum + g * load(hidden + at_slot + k, n);
          store(g * w, grad_h + at_slot + k, n);
        });
        grad_e[slot] = sum_of<T>(sum) + (grad_alpha ? grad_alpha[place * C + slot] : T(0));
        mean += grad_e[slot] * weight[slot];
      }
      for (int64_t slot = 0; slot < C; slot++) {
        grad_e[slot] = weight[slot] * (grad_e[slot] - mean);
      }
      for_each_vector<T>(A, [&](int64_t k, auto n) {
        Vector<T> sum(T(0)), sum_r = load(grad_score + k, n);
        for (int64_t slot = 0; slot < C; slot++) {
          S* score = scores + ((step * C + slot) * rows + row) * A + k;
          const auto value = load(score, n);
          const auto g = Vector<T>(grad_e[slot]) * load(r + k, n) * (one - value * value);
          store(g, score, n);
          sum = sum + g;
          sum_r = sum_r + Vector<T>(grad_e[slot]) * value;
        }
        store(sum_r, grad_score + k, n);
        store(sum, grad_input + k, n);
      });
    }
  }
}

}  // namespace fairseq_plugins::multi_channel
