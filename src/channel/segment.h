// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"

// Shared memory between a front and one worker: docs/shared_memory.md. The front creates, sizes,
// fills with pages and seals every segment; a worker only maps what it was handed. Neither side
// keeps anything in a segment but tensor bytes.
namespace tensord::channel {

// One mmap, unmapped with it.
class Mapping {
 public:
  Mapping() = default;
  Mapping(void* data, uint64_t bytes) : data_(data), bytes_(bytes) {}
  Mapping(Mapping&& from) noexcept
      : data_(std::exchange(from.data_, nullptr)), bytes_(std::exchange(from.bytes_, 0)) {}
  Mapping& operator=(Mapping&& from) noexcept {
    std::swap(data_, from.data_);
    std::swap(bytes_, from.bytes_);
    return *this;
  }
  ~Mapping();

  void* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  uint64_t bytes_ = 0;
};

// The front's side of a segment that carries inputs: only this mapping can ever write to it.
class RequestSegment {
 public:
  // RESOURCE_EXHAUSTED when memory is short; FAILED_PRECONDITION when the kernel does not seal as
  // asked (too old, or a policy forbids it), because an unsealed segment must not be handed out.
  static absl::StatusOr<RequestSegment> Create(uint64_t bytes);

  uint64_t size() const { return mapping_.bytes(); }
  // To hand over; keep or close it as you like afterwards.
  int fd() const { return fd_.get(); }
  // REQUIRES: offset + bytes <= size().
  std::span<std::byte> Bytes(uint64_t offset, uint64_t bytes) const;

 private:
  RequestSegment(base::UniqueFd fd, Mapping mapping)
      : fd_(std::move(fd)), mapping_(std::move(mapping)) {}

  base::UniqueFd fd_;
  Mapping mapping_;
};

// The front's side of a segment that carries outputs: mapped read-only, and written by a worker at
// any time, whatever was agreed. Read it with CopyFromShared and in no other way.
class ResponseSegment {
 public:
  // As RequestSegment::Create.
  static absl::StatusOr<ResponseSegment> Create(uint64_t bytes);

  uint64_t size() const { return mapping_.bytes(); }
  int fd() const { return fd_.get(); }
  // For CopyFromShared alone (tidy looks): a pointer that does not convert to what memcpy takes.
  const volatile std::byte* shared() const {
    return static_cast<const volatile std::byte*>(mapping_.data());
  }

 private:
  ResponseSegment(base::UniqueFd fd, Mapping mapping)
      : fd_(std::move(fd)), mapping_(std::move(mapping)) {}

  base::UniqueFd fd_;
  Mapping mapping_;
};

// Copies segment[offset, offset + dest.size()) into private memory. The one function that reads
// bytes a worker can still change: validate the copy, never the segment. INVALID_ARGUMENT when the
// range leaves the segment.
absl::Status CopyFromShared(std::span<std::byte> dest, const ResponseSegment& segment,
                            uint64_t offset);

// The worker's side of either kind. The descriptor may be closed once this is made.
class MappedSegment {
 public:
  enum class Access : uint8_t { kRead, kReadWrite };

  // The size is what fstat says. kRead for a request segment (the seal forbids more), kReadWrite
  // for a response segment.
  static absl::StatusOr<MappedSegment> Map(int fd, Access access);

  uint64_t size() const { return mapping_.bytes(); }
  // INVALID_ARGUMENT when the range leaves the segment.
  absl::StatusOr<std::span<const std::byte>> Read(uint64_t offset, uint64_t bytes) const;
  // Likewise. REQUIRES: mapped with kReadWrite.
  absl::StatusOr<std::span<std::byte>> Write(uint64_t offset, uint64_t bytes) const;

 private:
  MappedSegment(Mapping mapping, Access access) : mapping_(std::move(mapping)), access_(access) {}

  Mapping mapping_;
  Access access_;
};

}  // namespace tensord::channel
