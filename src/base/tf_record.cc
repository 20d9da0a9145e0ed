// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "base/tf_record.h"

#include <array>
#include <cstddef>

namespace tensord::base {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;  // Castagnoli's, bits reversed.
constexpr size_t kSlices = 8;                 // Bytes taken at a time.

using Tables = std::array<std::array<uint32_t, 256>, kSlices>;

// tables[k][b]: what byte b does to the checksum when k more bytes follow.
constexpr Tables MakeTables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    tables[0][byte] = crc;
  }
  for (size_t k = 1; k < kSlices; ++k) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t crc = tables[k - 1][byte];
      tables[k][byte] = (crc >> 8) ^ tables[0][crc & 0xff];
    }
  }
  return tables;
}
constexpr Tables kTables = MakeTables();

uint64_t LittleEndian(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

void AppendLittleEndian(uint64_t value, size_t bytes, std::string* out) {
  for (size_t i = 0; i < bytes; ++i) out->push_back(static_cast<char>(value >> (8 * i)));
}

// A checksum of bytes that hold checksums is no good one: stored ones are turned and shifted.
uint32_t Masked(std::string_view bytes) {
  const uint32_t crc = Crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

}  // namespace

uint32_t Crc32c(std::string_view bytes) {
  uint32_t crc = ~0u;
  while (bytes.size() >= kSlices) {
    const uint64_t mixed = LittleEndian(bytes.substr(0, kSlices)) ^ crc;
    crc = 0;
    for (size_t k = 0; k < kSlices; ++k) crc ^= kTables[kSlices - 1 - k][(mixed >> (8 * k)) & 0xff];
    bytes.remove_prefix(kSlices);
  }
  for (const char c : bytes) {
    crc = (crc >> 8) ^ kTables[0][(crc ^ static_cast<unsigned char>(c)) & 0xff];
  }
  return ~crc;
}

std::optional<uint64_t> TfRecordLength(std::string_view header) {
  const std::string_view length = header.substr(0, 8);
  if (LittleEndian(header.substr(8, 4)) != Masked(length)) return std::nullopt;
  return LittleEndian(length);
}

bool TfRecordMatches(std::string_view record, std::string_view footer) {
  return LittleEndian(footer) == Masked(record);
}

void AppendTfRecord(std::string_view record, std::string* out) {
  const size_t begin = out->size();
  AppendLittleEndian(record.size(), 8, out);
  AppendLittleEndian(Masked(std::string_view(*out).substr(begin)), 4, out);
  out->append(record);
  AppendLittleEndian(Masked(record), 4, out);
}

}  // namespace tensord::base
