// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/handlers/authorize.h"

namespace tensord::front {

absl::Status Authorize(const RequestHead& caller, Operation operation, std::string_view) {
  if (operation == Operation::kManage && !caller.grpc_port) {
    return absl::PermissionDeniedError(
        "which models are served is not for callers of the REST port to change; call the gRPC "
        "port, or serve both on one port");
  }
  return absl::OkStatus();
}

}  // namespace tensord::front
