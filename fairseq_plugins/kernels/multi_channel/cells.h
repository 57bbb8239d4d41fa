// The pointwise part of a time step (Eq. 3) for all channels, forward and backward; 1/m of Eq. 2 is applied here.

#pragma once

#include "layer.h"

namespace fairseq_plugins::multi_channel {

// The recurrent share of the gates is in `recurrent`, before 1/m; it may be where the activations go, if they are kept.
template <typename S, bool keep>
void lstm_forward(
    const Weights& weights, const Chunk& chunk, const S* gates, const S* recurrent, S* activations,
    const Compute<S>* cell_state, Compute<S>* next_cell_state, S* output) {
  using T = Compute<S>;
  const Specification& layer = weights.specification;
  const int64_t H = weights.hidden(), C = layer.channels, rows = chunk.rows, stride = weights.projected();
  for (int64_t slot = 0; slot < C; slot++) {
    const Vector<T> reciprocal(T(1) / T(layer.divisor(slot)));
    for (int64_t row = 0; row < rows; row++) {
      const S* u = recurrent + (slot * rows + row) * 4 * H;
      S* a = activations + (slot * rows + row) * 4 * H;
      const S* x = gates + row * stride;
      const T* c = cell_state + (slot * rows + row) * H;
      const int64_t next = ((slot + 1) % C * rows + row) * H;
      for_each_vector<T>(H, [&](int64_t k, auto n) {
        const auto gate = [&](int64_t which) {
          return load(u + which * H + k, n) * reciprocal + load(x + which * H + k, n);
        };
        const auto i = sigmoid<T>(gate(0)), f = sigmoid<T>(gate(1)), g = tangent<T>(gate(2)), o = sigmoid<T>(gate(3));
        const auto updated = f * load(c + k, n) + i * g;
        if constexpr (keep) {
          store(i, a + k, n);
          store(f, a + H + k, n);
          store(g, a + 2 * H + k, n);
          store(o, a + 3 * H + k, n);
        }
        store(updated, next_cell_state + next + k, n);
        store(o * tangent<T>(updated), output + next + k, n);
      });
    }
  }
}

template <typename S>
void gru_forward(
    const Weights& weights, const Chunk& chunk, const S* gates, const S* recurrent, S* activations, const S* temporal,
    S* inner, S* output) {
  using T = Compute<S>;
  const Specification& layer = weights.specification;
  const int64_t H = weights.hidden(), C = layer.channels, rows = chunk.rows, stride = weights.projected();
  const S* bias = weights.candidate_bias.const_data_ptr<S>();
  for (int64_t slot = 0; slot < C; slot++) {
    const Vector<T> interpolated_reciprocal(T(1) / T(layer.interpolated_divisor(slot)));
    const Vector<T> reciprocal(T(1) / T(layer.divisor(slot)));
    for (int64_t row = 0; row < rows; row++) {
      const int64_t place = (slot * rows + row) * H;
      const S* v = recurrent + 3 * place;
      S* a = activations + 3 * place;
      const S* x = gates + row * stride;
      S* next = output + ((slot + 1) % C * rows + row) * H;
      for_each_vector<T>(H, [&](int64_t k, auto n) {
        const auto r = sigmoid<T>(load(v + k, n) * reciprocal + load(x + k, n));
        const auto z = sigmoid<T>(load(v + H + k, n) * reciprocal + load(x + H + k, n));
        const auto u = load(v + 2 * H + k, n) * reciprocal + load(bias + k, n);
        const auto candidate = tangent<T>(load(x + 2 * H + k, n) + r * u);
        const auto s = load(temporal + place + k, n) * interpolated_reciprocal;
        store(r, a + k, n);
        store(z, a + H + k, n);
        store(candidate, a + 2 * H + k, n);
        store(u, inner + place + k, n);
        store(candidate + z * (s - candidate), next + k, n);
      });
    }
  }
}

template <typename S>
void rnn_forward(
    const Weights& weights, const Chunk& chunk, const S* gates, const S* recurrent, S* activations, S* output) {
  using T = Compute<S>;
  const Specification& layer = weights.specification;
  const int64_t H = weights.hidden(), C = layer.channels, rows = chunk.rows, stride = weights.projected();
  for (int64_t slot = 0; slot < C; slot++) {
    const Vector<T> reciprocal(T(1) / T(layer.divisor(slot)));
    for (int64_t row = 0; row < rows; row++) {
      const int64_t place = (slot * rows + row) * H;
      S* next = output + ((slot + 1) % C * rows + row) * H;
      for_each_vector<T>(H, [&](int64_t k, auto n) {
        const auto h = tangent<T>(load(recurrent + place + k, n) * reciprocal + load(gates + row * stride + k, n));
        store(h, activations + place + k, n);
        store(h, next + k, n);
      });
    }
  }
}

// The gradients of the LSTM's gates take the place of its activations, divided by m; their sums over the slots go to
// `grad_gates`. `grad_cell_state` is that of c(t), `grad_previous` becomes that of c(t - 1).
template <typename S>
void lstm_backward(
    const Weights& weights, const Chunk& chunk, int64_t step, S* activations, const Compute<S>* grad_output,
    const Compute<S>* grad_cell_state, Compute<S>* grad_previous, S* grad_gates) {
  using T = Compute<S>;
  const Specification& layer = weights.specification;
  const int64_t H = weights.hidden(), C = layer.channels, rows = chunk.rows, stride = weights.projected();
  const T* cell_state = chunk.cell_states.const_data_ptr<T>() + step * C * rows * H;
  const T* next_cell_state = cell_state + C * rows * H;
  const Vector<T> one(T(1));
  for (int64_t row = 0; row < rows; row++) {
    S* sums = grad_gates + row * stride;
    for_each_vector<T>(H, [&](int64_t k, auto n) {
      Vector<T> sum[4] = {Vector<T>(T(0)), Vector<T>(T(0)), Vector<T>(T(0)), Vector<T>(T(0))};
      for (int64_t slot = 0; slot < C; slot++) {
        const Vector<T> reciprocal(T(1) / T(layer.divisor(slot)));
        const int64_t place = (slot * rows + row) * H + k, next = ((slot + 1) % C * rows + row) * H + k;
        S* a = activations + (slot * rows + row) * 4 * H + k;
        const auto i = load(a, n), f = load(a + H, n), g = load(a + 2 * H, n), o = load(a + 3 * H, n);
        const auto squashed = tangent<T>(load(next_cell_state + next, n));
        const auto grad_h = load(grad_output + next, n);
        const auto grad_c = load(grad_cell_state + next, n) + grad_h * o * (one - squashed * squashed);
        const Vector<T> grads[4] = {
            grad_c * g * i * (one - i), grad_c * load(cell_state + place, n) * f * (one - f), grad_c * i * (one - g * g),
            grad_h * squashed * o * (one - o)};
        store(grad_c * f, grad_previous + place, n);
        for (int64_t which = 0; which < 4; which++) {
          sum[which] = sum[which] + grads[which];
          store(grads[which] * reciprocal, a + which * H, n);
        }
      }
      for (int64_t which = 0; which < 4; which++) store(sum[which], sums + which * H + k, n);
    });
  }
}

// As lstm_backward; `interpolated` becomes the gradient of the sum that the GRU interpolates with, `grad_inside` (rows, H)
// that of the candidate's bias inside the reset gate.
template <typename S>
void gru_backward(
    const Weights& weights, const Chunk& chunk, int64_t step, S* activations, const Compute<S>* grad_output,
    Compute<S>* interpolated, S* grad_gates, Compute<S>* grad_inside) {
  using T = Compute<S>;
  const Specification& layer = weights.specification;
  const int64_t H = weights.hidden(), C = layer.channels, rows = chunk.rows, stride = weights.projected();
  const S* temporal = chunk.temporal.const_data_ptr<S>() + step * C * rows * H;
  const S* inner = chunk.inner.const_data_ptr<S>() + step * C * rows * H;
  const Vector<T> one(T(1));
  for (int64_t row = 0; row < rows; row++) {
    S* sums = grad_gates + row * stride;
    for_each_vector<T>(H, [&](int64_t k, auto n) {
      Vector<T> sum_r(T(0)), sum_z(T(0)), sum_candidate(T(0)), sum_inside(T(0));
      for (int64_t slot = 0; slot < C; slot++) {
        const Vector<T> interpolated_reciprocal(T(1) / T(layer.interpolated_divisor(slot)));
        const Vector<T> reciprocal(T(1) / T(layer.divisor(slot)));
        const int64_t place = (slot * rows + row) * H + k, next = ((slot + 1) % C * rows + row) * H + k;
        S* a = activations + (slot * rows + row) * 3 * H + k;
        const auto r = load(a, n), z = load(a + H, n), candidate = load(a + 2 * H, n);
        const auto grad_h = load(grad_output + next, n);
        const auto s = load(temporal + place, n) * interpolated_reciprocal;
        const auto grad_z = grad_h * (s - candidate) * z * (one - z);
        const auto grad_candidate = grad_h * (one - z) * (one - candidate * candidate);
        const auto grad_r = grad_candidate * load(inner + place, n) * r * (one - r);
        const auto inside = grad_candidate * r;
        store(grad_h * z * interpolated_reciprocal, interpolated + place, n);
        store(grad_r * reciprocal, a, n);
        store(grad_z * reciprocal, a + H, n);
        store(inside * reciprocal, a + 2 * H, n);
        sum_r = sum_r + grad_r;
        sum_z = sum_z + grad_z;
        sum_candidate = sum_candidate + grad_candidate;
        sum_inside = sum_inside + inside;
      }
      store(sum_r, sums + k, n);
      store(sum_z, sums + H + k, n);
      store(sum_candidate, sums + 2 * H + k, n);
      store(sum_inside, grad_inside + row * H + k, n);
    });
  }
}

template <typename S>
void rnn_backward(
    const Weights& weights, const Chunk& chunk, S* activations, const Compute<S>* grad_output, S* grad_gates) {
  using T = Compute<S>;
  const Specification& layer = weights.specification;
  const int64_t H = weights.hidden(), C = layer.channels, rows = chunk.rows, stride = weights.projected();
  const Vector<T> one(T(1));
  for (int64_t row = 0; row < rows; row++) {
    for_each_vector<T>(H, [&](int64_t k, auto n) {
      Vector<T> sum(T(0));
      for (int64_t slot = 0; slot < C; slot++) {
        const Vector<T> reciprocal(T(1) / T(layer.divisor(slot)));
        S* a = activations + (slot * rows + row) * H + k;
        const auto h = load(a, n);
        const auto grad = load(grad_output + ((slot + 1) % C * rows + row) * H + k, n) * (one - h * h);
        store(grad * reciprocal, a, n);
        sum = sum + grad;
      }
      store(sum, grad_gates + row * stride + k, n);
    });
  }
}

}  // namespace fairseq_plugins::multi_channel
