// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// TensorFlow's file of records: for each a length, the length's checksum, the bytes and theirs, all
// little-endian. Source: tensorflow.org/tutorials/load_data/tfrecord#tfrecords_format_details.
namespace tensord::base {

// CRC-32C (Castagnoli).
uint32_t Crc32c(std::string_view bytes);

inline constexpr size_t kTfRecordHeaderBytes = 12;
inline constexpr size_t kTfRecordFooterBytes = 4;

// The length of the record behind this header; none when the checksum says that it is none.
// REQUIRES: header.size() == kTfRecordHeaderBytes.
std::optional<uint64_t> TfRecordLength(std::string_view header);

// Whether the footer fits the record. REQUIRES: footer.size() == kTfRecordFooterBytes.
bool TfRecordMatches(std::string_view record, std::string_view footer);

// Header, record and footer.
void AppendTfRecord(std::string_view record, std::string* out);

}  // namespace tensord::base
