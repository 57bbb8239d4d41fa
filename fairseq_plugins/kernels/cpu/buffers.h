// Memory for what a kernel keeps for its backward pass: large pages, and blocks that stay for the next step.

#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <list>
#include <mutex>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace fairseq_plugins {

using at::Tensor;

// Asks Linux for large pages. Written for the first time, hundreds of megabytes in pages of 4 KiB take 4 % of a training
// step of the language model's size. A refusal changes nothing but the speed.
inline void advise_large_pages(void* data, int64_t size) {
#ifdef __linux__
  constexpr int64_t page = 2 << 20;
  const uintptr_t from = reinterpret_cast<uintptr_t>(data) & ~uintptr_t(4095);
  if (size >= 2 * page) madvise(reinterpret_cast<void*>(from), size, MADV_HUGEPAGE);
#endif
}

// Memory for buffers that malloc would give back to Linux after every step of a training, to be zeroed for the next one:
// that takes another 3 % of a step of the language model's size.
class BufferPool {
 public:
  // glibc keeps blocks up to this size (its M_MMAP_THRESHOLD is never above) and none beyond.
  static constexpr int64_t smallest = 32 << 20;

  // Never destroyed, since tensors may live longer than static objects.
  static BufferPool& instance() {
    static BufferPool& pool = *new BufferPool;
    return pool;
  }

  // Uninitialised, of at least `size` bytes.
  Tensor take(int64_t size) {
    const std::lock_guard<std::mutex> lock(mutex_);
    Tensor taken;
    const auto best = best_fit(size);
    if (best != free_.end()) {
      taken = *best;
      free_size_ -= taken.numel();
      free_.erase(best);
    } else {
      // No more is held than was ever used at once.
      const int64_t most = std::max(most_used_, used_size_ + size);
      while (!free_.empty() && used_size_ + size + free_size_ > most) {
        free_size_ -= free_.front().numel();
        free_.pop_front();
      }
      taken = at::empty({size}, at::kByte);
      advise_large_pages(taken.data_ptr(), size);
    }
    used_size_ += taken.numel();
    most_used_ = std::max(most_used_, used_size_);
    return taken;
  }

  void give_back(const Tensor& block) {
    const std::lock_guard<std::mutex> lock(mutex_);
    used_size_ -= block.numel();
    free_size_ += block.numel();
    free_.push_back(block);
  }

 private:
  // The smallest free block of `size` bytes or up to a quarter more.
  std::list<Tensor>::iterator best_fit(int64_t size) {
    auto best = free_.end();
    for (auto block = free_.begin(); block != free_.end(); ++block) {
      const bool fits = block->numel() >= size && block->numel() <= size + size / 4;
      if (fits && (best == free_.end() || block->numel() < best->numel())) best = block;
    }
    return best;
  }

  std::mutex mutex_;
  std::list<Tensor> free_;                                 // in the order in which they were given back
  int64_t free_size_ = 0, used_size_ = 0, most_used_ = 0;  // bytes
};

// An uninitialised tensor for something that is kept for every step.
inline Tensor buffer(at::IntArrayRef sizes, const at::TensorOptions& options) {
  const int64_t size = c10::multiply_integers(sizes) * static_cast<int64_t>(options.dtype().itemsize());
  if (size < BufferPool::smallest) {
    const Tensor tensor = at::empty(sizes, options);
    advise_large_pages(tensor.data_ptr(), size);
    return tensor;
  }
  const Tensor block = BufferPool::instance().take(size);
  return at::from_blob(block.data_ptr(), sizes, [block](void*) { BufferPool::instance().give_back(block); }, options);
}

}  // namespace fairseq_plugins
