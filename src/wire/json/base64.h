// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <string_view>

namespace tensord::wire {

// Appends the bytes behind base64 text in the standard or the URL-safe alphabet. White space is
// skipped, padding may be left out. False when the text is not base64; *out then holds a part.
bool AppendBase64Decoded(std::string_view text, std::string* out);

// Appends standard base64 with padding.
void AppendBase64(std::string_view bytes, std::string* out);

}  // namespace tensord::wire
