// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

namespace tensord::wire {

inline constexpr int kFloatTextBytes = 24;  // Of room for PrintUsualFloat.

// Prints a float of usual size (0.0001 to a million, either sign) as AppendReal does, several times
// faster than std::to_chars with a precision. Returns the end of the text, null for a value that
// has to go the general way.
char* PrintUsualFloat(float value, char* out);

}  // namespace tensord::wire
