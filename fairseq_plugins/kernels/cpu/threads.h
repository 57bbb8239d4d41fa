// A batch split over the threads: every thread runs its rows from the first step to the last, and none waits for another.

#pragma once

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <vector>

#include "cpu/guards.h"

namespace fairseq_plugins {

// The first row of each chunk, and the end: as many chunks as threads or a multiple of that, so that what a step writes
// for one, `row_size` bytes for each row, stays in a core's cache, but none of them tiny.
inline std::vector<int64_t> chunk_boundaries(int64_t batch, int64_t row_size) {
  constexpr int64_t smallest = 4, cache = 3 << 18, enough = 32;
  const int64_t threads = at::get_num_threads();
  const int64_t most = std::max(cache / row_size, enough);
  const int64_t rounds = (batch + threads * most - 1) / (threads * most);
  const int64_t chunks = std::max<int64_t>(1, std::min(rounds * threads, batch / smallest));
  std::vector<int64_t> first;
  for (int64_t i = 0; i <= chunks; i++) first.push_back(batch * i / chunks);
  return first;
}

// The rows of the largest chunk.
inline int64_t largest_chunk(const std::vector<int64_t>& boundaries) {
  const int64_t chunks = boundaries.size() - 1;
  return (boundaries.back() + chunks - 1) / chunks;
}

// Calls body(S(), i) for every chunk i, on threads of their own.
template <typename Body>
void for_each_chunk(at::ScalarType type, int64_t chunks, const Body& body) {
  AT_DISPATCH_FLOATING_TYPES_AND(at::kBFloat16, type, "for_each_chunk", [&] {
    const auto run = [&](int64_t i) {
      const KernelGuard of_this_thread;
      body(scalar_t(), i);
    };
    // Alone, its products may use all threads.
    if (chunks == 1) return run(0);
    at::parallel_for(0, chunks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) run(i);
    });
  });
}

}  // namespace fairseq_plugins
