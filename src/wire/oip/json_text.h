// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "base/utf8.h"
#include "wire/json/print.h"

namespace tensord::wire {

// Writes the punctuation of JSON objects and lists.
class JsonText {
 public:
  void Name(std::string_view name) {
    Comma();
    AppendJsonString(name, &out_);
    out_.push_back(':');
    fresh_ = true;
  }
  void Text(std::string_view text) {
    Comma();
    AppendJsonString(base::ToUtf8(text), &out_);
  }
  void Number(int64_t number) {
    Comma();
    base::AppendPiece(&out_, number);
  }
  void Open(char bracket) {
    Comma();
    out_.push_back(bracket);
    fresh_ = true;
  }
  void Close(char bracket) {
    out_.push_back(bracket);
    fresh_ = false;
  }
  std::string Take() { return std::move(out_); }

 private:
  void Comma() {
    if (!std::exchange(fresh_, false)) out_.push_back(',');
  }

  std::string out_;
  bool fresh_ = true;  // Nothing stands before the next value.
};

}  // namespace tensord::wire
