// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/record_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "base/limits.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "base/tf_record.h"

namespace tensord::serve {
namespace {

absl::Status KernelError(const char* call) {
  const std::string words = base::Cat(call, ": ", std::strerror(errno));
  return errno == ENOENT ? absl::NotFoundError(words) : absl::UnavailableError(words);
}

absl::Status Damaged(uint64_t number, std::string_view what) {
  return absl::DataLossError(base::Cat("record ", number, " ", what,
                                       ": the file must be a TFRecord file of PredictionLog "
                                       "messages, as tf.io.TFRecordWriter writes them, without "
                                       "compression"));
}

}  // namespace

absl::StatusOr<RecordReader> RecordReader::Open(const std::string& path) {
  // Never hangs on a FIFO.
  base::UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file.valid()) return KernelError("open");
  struct stat found {};
  if (fstat(file.get(), &found) != 0) return KernelError("fstat");
  if (!S_ISREG(found.st_mode)) return absl::InvalidArgumentError("it is no regular file");
  return RecordReader(std::move(file));
}

RecordReader::Piece RecordReader::Next() {
  Piece piece;
  for (size_t bytes = 0; bytes < kPieceBytes && !piece.end;) {
    std::string record;
    piece.status = ReadOne(&record, &piece.end);
    if (!piece.status.ok()) piece.end = true;
    if (piece.end) break;
    bytes += record.size() + 1;
    piece.records.push_back(std::move(record));
  }
  return piece;
}

absl::Status RecordReader::ReadOne(std::string* record, bool* end) {
  std::string header;
  ASSIGN_OR_RETURN(const size_t got, ReadAt(offset_, base::kTfRecordHeaderBytes, &header));
  *end = got == 0;
  if (*end) return absl::OkStatus();
  const uint64_t number = records_ + 1;
  if (got < header.size()) return Damaged(number, "is cut short");
  const std::optional<uint64_t> length = base::TfRecordLength(header);
  if (!length.has_value()) return Damaged(number, "has a damaged header");
  if (*length > limits::kWarmUpRecordBytesMax) {
    return absl::InvalidArgumentError(base::Cat("record ", number, " has ", *length,
                                                " bytes; the limit is ",
                                                limits::kWarmUpRecordBytesMax));
  }
  const size_t whole = *length + base::kTfRecordFooterBytes;
  ASSIGN_OR_RETURN(const size_t body, ReadAt(offset_ + header.size(), whole, record));
  if (body < whole) return Damaged(number, "is cut short");
  const std::string_view bytes(*record);
  if (!base::TfRecordMatches(bytes.substr(0, *length), bytes.substr(*length))) {
    return Damaged(number, "is damaged");
  }
  record->resize(*length);
  offset_ += header.size() + whole;
  ++records_;
  return absl::OkStatus();
}

// How many of the bytes there were; fewer at the end of the file.
absl::StatusOr<size_t> RecordReader::ReadAt(uint64_t offset, size_t bytes, std::string* out) const {
  out->resize(bytes);
  size_t done = 0;
  while (done < bytes) {
    const ssize_t got =
        pread(file_.get(), out->data() + done, bytes - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return KernelError("read");
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

}  // namespace tensord::serve
