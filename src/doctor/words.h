// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Reading the kernel's text files, and writing numbers for people.
namespace tensord::doctor {

std::string_view Trim(std::string_view text);
// Without the empty pieces.
std::vector<std::string_view> Split(std::string_view text, std::string_view separators);
// The parts would outlive the text.
std::vector<std::string_view> Split(std::string&& text, std::string_view separators) = delete;
std::optional<int64_t> ToNumber(std::string_view text);
std::optional<double> ToDouble(std::string_view text);

// The value of the first line "key: value" or "key = value"; empty when there is none.
std::string_view ValueOf(std::string_view text, std::string_view key);
// The number in such a line; bytes where it ends in " kB".
std::optional<int64_t> NumberOf(std::string_view text, std::string_view key);
// The members of "0-3,7"; empty when it is no such list.
std::vector<int> ListOf(std::string_view text);

// 3.14159 with one digit: "3.1".
std::string Fixed(double value, int digits);
std::string Percent(double share);  // 0.853: "85 %"
std::string Bytes(uint64_t bytes);  // "15.4 GiB", "302 MiB"
std::string Join(const std::vector<std::string>& pieces, std::string_view between);

// What a file wrote, fit for a terminal: control characters become '?'.
std::string Printable(std::string_view text);
// The same, with "?" for every byte beyond ASCII as well: text that may be no text at all.
std::string Ascii(std::string_view text);

}  // namespace tensord::doctor
