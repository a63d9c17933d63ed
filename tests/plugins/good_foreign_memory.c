#include <dlpack/dlpack.h>
#include <stdlib.h>
#include <string.h>

/* Memory of another library, in plain C, as DLPack hands it over: a block with room before and behind it, a
 * shape and strides of its own, and a deleter that counts and spoils. */

typedef struct foreign {
  DLManagedTensor managed;
  int64_t shape[8], strides[8];
  char* block;
  size_t bytes;
  int* deleted; /* how often */
} foreign;

static void delete_foreign(DLManagedTensor* m) {
  foreign* f = (foreign*)m->manager_ctx;
  ++*f->deleted;
  memset(f->block, 0xFF, f->bytes); /* who reads it after this reads NaN */
}

/* `bytes` bytes, of which the tensor begins at `offset`; strides may be null. */
__attribute__((visibility("default"))) DLManagedTensor* make_foreign(size_t bytes, uint64_t offset, int rank,
                                                                     const int64_t* shape,
                                                                     const int64_t* strides, DLDataType dtype,
                                                                     int* deleted) {
  foreign* f = (foreign*)calloc(1, sizeof *f);
  f->block = (char*)aligned_alloc(64, (bytes + 63) / 64 * 64);
  memset(f->block, 0, bytes);
  f->bytes = bytes, f->deleted = deleted;
  memcpy(f->shape, shape, (size_t)rank * sizeof *shape);
  if (strides) memcpy(f->strides, strides, (size_t)rank * sizeof *strides);
  DLTensor* t = &f->managed.dl_tensor;
  t->data = f->block, t->byte_offset = offset;
  t->device.device_type = kDLCPU;
  t->ndim = rank, t->dtype = dtype, t->shape = f->shape, t->strides = strides ? f->strides : NULL;
  f->managed.manager_ctx = f, f->managed.deleter = delete_foreign;
  return &f->managed;
}

/* What is left when the deleter has been called, which the test looks at first. */
__attribute__((visibility("default"))) void end_foreign(DLManagedTensor* m) {
  foreign* f = (foreign*)m->manager_ctx;
  free(f->block);
  free(f);
}
