// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Early returns for absl::Status and absl::StatusOr<T>. Each is one statement; neither may be the
// body of an `if` without braces.

#define TENSORD_CONCAT_(a, b) a##b
#define TENSORD_CONCAT(a, b) TENSORD_CONCAT_(a, b)

#define RETURN_IF_ERROR(expression)                           \
  do {                                                        \
    if (absl::Status status_ = (expression); !status_.ok()) { \
      return status_;                                         \
    }                                                         \
  } while (false)

// ASSIGN_OR_RETURN(Shape shape, ParseShape(bytes)); the type must hold no comma outside brackets.
#define ASSIGN_OR_RETURN(declaration, expression) \
  ASSIGN_OR_RETURN_IMPL_(TENSORD_CONCAT(status_or_, __LINE__), declaration, expression)

// NOLINTBEGIN(bugprone-macro-parentheses): a declaration takes none.
#define ASSIGN_OR_RETURN_IMPL_(holder, declaration, expression) \
  auto holder = (expression);                                   \
  if (!holder.ok()) return std::move(holder).status();          \
  declaration = *std::move(holder)
// NOLINTEND(bugprone-macro-parentheses)
