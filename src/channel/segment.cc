// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "channel/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "base/check.h"
#include "base/limits.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "channel/memory_file.h"

namespace tensord::channel {
namespace {

constexpr int kRequestSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE;
constexpr int kResponseSeals = F_SEAL_SHRINK | F_SEAL_GROW;

absl::StatusOr<Mapping> Map(int fd, uint64_t bytes, int protection) {
  // Populated: a page fault costs more than the copy that it interrupts.
  void* data = mmap(nullptr, bytes, protection, MAP_SHARED | MAP_POPULATE, fd, 0);
  if (data == MAP_FAILED) return MemoryError("mmap");
  return Mapping(data, bytes);
}

absl::Status CheckSize(uint64_t bytes) {
  if (bytes > 0 && bytes <= limits::kSegmentBytesMax) return absl::OkStatus();
  return absl::InvalidArgumentError(base::Cat("a segment of ", bytes, " bytes cannot be made"));
}

absl::Status CheckRange(uint64_t size, uint64_t offset, uint64_t bytes) {
  if (offset <= size && bytes <= size - offset) return absl::OkStatus();
  return absl::InvalidArgumentError(
      base::Cat("bytes ", offset, " to +", bytes, " leave the segment of ", size, " bytes"));
}

}  // namespace

Mapping::~Mapping() {
  if (data_ != nullptr) TENSORD_CHECK(munmap(data_, bytes_) == 0);
}

absl::StatusOr<RequestSegment> RequestSegment::Create(uint64_t bytes) {
  RETURN_IF_ERROR(CheckSize(bytes));
  ASSIGN_OR_RETURN(MemoryFile memory, MakeMemoryFile("tensord-request", bytes));
  // Mapped for writing before the seal, which then forbids every other writable mapping.
  ASSIGN_OR_RETURN(Mapping mapping, Map(memory.fd.get(), bytes, PROT_READ | PROT_WRITE));
  RETURN_IF_ERROR(Seal(memory, kRequestSeals));
  return RequestSegment(std::move(memory.fd), std::move(mapping));
}

std::span<std::byte> RequestSegment::Bytes(uint64_t offset, uint64_t bytes) const {
  TENSORD_CHECK(CheckRange(size(), offset, bytes).ok());
  return {static_cast<std::byte*>(mapping_.data()) + offset, bytes};
}

absl::StatusOr<ResponseSegment> ResponseSegment::Create(uint64_t bytes) {
  RETURN_IF_ERROR(CheckSize(bytes));
  ASSIGN_OR_RETURN(MemoryFile memory, MakeMemoryFile("tensord-response", bytes));
  ASSIGN_OR_RETURN(Mapping mapping, Map(memory.fd.get(), bytes, PROT_READ));
  RETURN_IF_ERROR(Seal(memory, kResponseSeals));
  return ResponseSegment(std::move(memory.fd), std::move(mapping));
}

absl::Status CopyFromShared(std::span<std::byte> dest, const ResponseSegment& segment,
                            uint64_t offset) {
  RETURN_IF_ERROR(CheckRange(segment.size(), offset, dest.size()));
  if (dest.empty()) return absl::OkStatus();
  // memcpy through a volatile pointer is a call that the compiler cannot see through. Were it plain
  // memcpy, the compiler could read the source again later instead of the copy (nothing in the
  // language says that another process writes there), and what was validated would not be what is
  // used. Byte by byte through `volatile` would be as safe and ten times slower.
  //
  // ThreadSanitizer still sees the call, and that is wanted: with two honest peers in one process,
  // a read that no record ordered is a bug of ours. A hostile peer's writes are races by intent;
  // that test runs under AddressSanitizer only.
  static void* (*const volatile copy)(void*, const void*, size_t) = &std::memcpy;
  copy(dest.data(), const_cast<const std::byte*>(segment.shared() + offset), dest.size());
  return absl::OkStatus();
}

absl::StatusOr<MappedSegment> MappedSegment::Map(int fd, Access access) {
  // Not by fstat, which the C library makes of a call that takes a path: a worker that is sealed
  // has none of those. Nobody reads or writes through the descriptor.
  const off_t end = lseek(fd, 0, SEEK_END);
  if (end < 0) return MemoryError("lseek");
  const auto bytes = static_cast<uint64_t>(end);
  RETURN_IF_ERROR(CheckSize(bytes));
  const int protection = access == Access::kRead ? PROT_READ : PROT_READ | PROT_WRITE;
  ASSIGN_OR_RETURN(Mapping mapping, channel::Map(fd, bytes, protection));
  return MappedSegment(std::move(mapping), access);
}

absl::StatusOr<std::span<const std::byte>> MappedSegment::Read(uint64_t offset,
                                                               uint64_t bytes) const {
  RETURN_IF_ERROR(CheckRange(size(), offset, bytes));
  return std::span<const std::byte>(static_cast<const std::byte*>(mapping_.data()) + offset, bytes);
}

absl::StatusOr<std::span<std::byte>> MappedSegment::Write(uint64_t offset, uint64_t bytes) const {
  TENSORD_CHECK(access_ == Access::kReadWrite);
  RETURN_IF_ERROR(CheckRange(size(), offset, bytes));
  return std::span<std::byte>(static_cast<std::byte*>(mapping_.data()) + offset, bytes);
}

}  // namespace tensord::channel
