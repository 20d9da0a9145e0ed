// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/status_map.h"

#include <gtest/gtest.h>

namespace tensord::wire {
namespace {

struct Row {
  absl::StatusCode code;
  int grpc;
  int http;
};

constexpr Row kRows[] = {
    {absl::StatusCode::kOk, 0, 200},
    {absl::StatusCode::kCancelled, 1, 499},
    {absl::StatusCode::kUnknown, 2, 500},
    {absl::StatusCode::kInvalidArgument, 3, 400},
    {absl::StatusCode::kDeadlineExceeded, 4, 504},
    {absl::StatusCode::kNotFound, 5, 404},
    {absl::StatusCode::kAlreadyExists, 6, 409},
    {absl::StatusCode::kPermissionDenied, 7, 403},
    {absl::StatusCode::kResourceExhausted, 8, 429},
    {absl::StatusCode::kFailedPrecondition, 9, 400},
    {absl::StatusCode::kAborted, 10, 409},
    {absl::StatusCode::kOutOfRange, 11, 400},
    {absl::StatusCode::kUnimplemented, 12, 501},
    {absl::StatusCode::kInternal, 13, 500},
    {absl::StatusCode::kUnavailable, 14, 503},
    {absl::StatusCode::kDataLoss, 15, 500},
    {absl::StatusCode::kUnauthenticated, 16, 401},
    {static_cast<absl::StatusCode>(20), 2, 500},
    {static_cast<absl::StatusCode>(-1), 2, 500},
};

TEST(StatusMap, EveryCodeHasItsGrpcNumberAndHttpStatus) {
  for (const Row& row : kRows) {
    EXPECT_EQ(GrpcCode(row.code), row.grpc);
    EXPECT_EQ(HttpStatus(row.code), row.http) << row.grpc;
  }
}

}  // namespace
}  // namespace tensord::wire
