#include "seam/transfer.h"

namespace weft::seam {
namespace {

constexpr uint64_t kPiece = 4 << 20;

bool at_once(const Device& d) { return d.host_memory() && !d.ordered(); }
std::byte* address(Region r) { return static_cast<std::byte*>(r.buffer.handle) + r.offset; }

/// The part in flight in one of the two buffers.
struct Piece {
  uint64_t point = 0, at = 0, bytes = 0;
};

// One buffer is uploaded while the other is filled.
Status in_pieces(Queue& from_queue, Region from, Queue& to_queue, Region to, uint64_t bytes,
                 const BufferRef* staging) {
  Piece pieces[2];
  const auto deliver = [&](size_t i) -> Status {
    WEFT_CHECK(from_queue.await(pieces[i].point).take_status());
    return to_queue.copy_in(to.buffer, to.offset + pieces[i].at, staging[i]->address(), pieces[i].bytes);
  };
  size_t k = 0;
  for (uint64_t at = 0; at < bytes; at += kPiece, ++k) {
    Piece& piece = pieces[k % 2];
    piece.at = at, piece.bytes = std::min(kPiece, bytes - at);
    WEFT_CHECK(from_queue.copy(*staging[k % 2].get(), 0, from.buffer, from.offset + at, piece.bytes));
    WEFT_TRY(piece.point, from_queue.mark());
    if (k > 0) WEFT_CHECK(deliver((k - 1) % 2));
  }
  return deliver((k - 1) % 2);
}

// By the target, where it reaches the memory of its backend's other device; false: it does not.
Result<bool> directly(Queue& from_queue, Region from, Queue& to_queue, Region to, uint64_t bytes) {
  Device &source = from_queue.device(), &target = to_queue.device();
  const weft_backend& backend = target.backend();
  if (&source.backend() != &backend || !backend.import_memory) return false;
  const DLTensor there{.data = from.buffer.handle,
                       .device = source.dl(),
                       .ndim = 0,
                       .dtype = {kDLUInt, 8, 1},
                       .shape = nullptr,
                       .strides = nullptr,
                       .byte_offset = from.offset};
  CError error;
  Buffer reached;
  if (backend.import_memory(target.c(), &there, bytes, &reached.handle, error.out()) != WEFT_OK) return false;
  const auto copy = [&]() -> Status {
    WEFT_CHECK(source.order(from_queue, from.buffer));
    WEFT_TRY(const uint64_t written, from_queue.mark());
    WEFT_CHECK(from_queue.await(written).take_status());
    WEFT_CHECK(to_queue.copy(to.buffer, to.offset, reached, 0, bytes));
    WEFT_TRY(const uint64_t read, to_queue.mark());
    return to_queue.await(read).take_status();
  };
  Status copied = copy();
  backend.free(target.c(), reached.handle);
  if (!copied.ok()) return copied;
  return true;
}

}  // namespace

Status transfer(Queue& from_queue, Region from, Queue& to_queue, Region to, uint64_t bytes) {
  if (bytes == 0) return {};
  Device& source = from_queue.device();
  if (at_once(source)) {
    WEFT_CHECK(source.order(from_queue, from.buffer));
    return to_queue.copy_in(to.buffer, to.offset, address(from), bytes);
  }
  if (at_once(to_queue.device())) return from_queue.copy_out(address(to), from.buffer, from.offset, bytes);
  WEFT_TRY(const bool arrived, directly(from_queue, from, to_queue, to, bytes));
  if (arrived) return {};
  const std::lock_guard lock(source.staging_mutex());
  WEFT_TRY(const auto* staging, source.staging(kPiece));
  Status s = in_pieces(from_queue, from, to_queue, to, bytes, staging);
  if (!s.ok()) from_queue.drain();  // so no copy is in flight when the pieces are reused
  return s;
}

}  // namespace weft::seam
