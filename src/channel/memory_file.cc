// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "channel/memory_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "base/status_macros.h"
#include "base/text.h"

// Newer than Debian 12's headers; the kernel's own numbers (include/uapi/linux).
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif
#ifndef F_SEAL_EXEC
#define F_SEAL_EXEC 0x0020
#endif

namespace tensord::channel {
namespace {

constexpr int kUnchanging = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

}  // namespace

absl::Status MemoryError(const char* what) {
  const std::string text = base::Cat("shared memory: ", what, ": ", std::strerror(errno));
  switch (errno) {
    case ENOSPC:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
      return absl::ResourceExhaustedError(text);
    default:
      return absl::FailedPreconditionError(text);
  }
}

absl::StatusOr<MemoryFile> MakeMemoryFile(const char* name, uint64_t bytes) {
  MemoryFile memory;
  memory.fd.Reset(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL));
  memory.seals = F_SEAL_EXEC;
  if (!memory.fd.valid() && errno == EINVAL) {  // Before Linux 6.3 there is no such flag.
    memory.fd.Reset(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
    memory.seals = 0;
  }
  if (!memory.fd.valid()) return MemoryError("memfd_create");
  const auto size = static_cast<off_t>(bytes);
  if (ftruncate(memory.fd.get(), size) != 0) return MemoryError("ftruncate");
  int rc = 0;
  do {
    rc = fallocate(memory.fd.get(), 0, 0, size);
  } while (rc != 0 && errno == EINTR);
  if (rc != 0) return MemoryError("fallocate");
  return memory;
}

absl::Status Seal(const MemoryFile& memory, int seals) {
  const int fd = memory.fd.get();
  if (fcntl(fd, F_ADD_SEALS, seals) != 0) return MemoryError("cannot seal");
  if (fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL) != 0) return MemoryError("cannot finish sealing");
  const int expected = seals | F_SEAL_SEAL | memory.seals;
  const int found = fcntl(fd, F_GET_SEALS);
  if (found == expected) return absl::OkStatus();
  return absl::FailedPreconditionError(
      base::Cat("shared memory: the kernel set seals ", found, " where ", expected,
                " were asked for; memory without its seals is not handed over"));
}

absl::StatusOr<base::UniqueFd> SealBytes(const char* name, std::string_view bytes) {
  ASSIGN_OR_RETURN(MemoryFile memory, MakeMemoryFile(name, bytes.size()));
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t wrote =
        pwrite(memory.fd.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return MemoryError("pwrite");
    done += static_cast<size_t>(wrote);
  }
  RETURN_IF_ERROR(Seal(memory, kUnchanging));
  return std::move(memory.fd);
}

absl::Status CheckSealed(int fd, uint64_t bytes_max) {
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & kUnchanging) != kUnchanging) {
    return absl::InvalidArgumentError("expected memory that is sealed, not something else");
  }
  struct stat found {};
  if (fstat(fd, &found) != 0) return MemoryError("fstat");
  if (static_cast<uint64_t>(found.st_size) <= bytes_max) return absl::OkStatus();
  return absl::InvalidArgumentError(
      base::Cat("expected at most ", bytes_max, " bytes, not ", found.st_size));
}

absl::StatusOr<std::string> ReadSealed(int fd, uint64_t bytes_max) {
  RETURN_IF_ERROR(CheckSealed(fd, bytes_max));
  struct stat found {};
  if (fstat(fd, &found) != 0) return MemoryError("fstat");
  std::string bytes(static_cast<size_t>(found.st_size), '\0');
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got =
        pread(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return MemoryError("pread");
    done += static_cast<size_t>(got);
  }
  return bytes;
}

}  // namespace tensord::channel
