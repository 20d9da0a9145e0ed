// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/handlers/reflection.h"

#include <string>
#include <utility>

#include "front/handlers/authorize.h"
#include "wire/chars.h"
#include "wire/reflection.h"

namespace tensord::front {

void ReflectionGrpc(LoopContext& context, std::shared_ptr<Exchange> exchange, const GrpcHead&,
                    std::span<const std::byte> message) {
  const absl::Status allowed = Authorize(context, exchange->head(), Operation::kRead, {});
  if (!allowed.ok()) return exchange->Send(MakeGrpcEnd(allowed));
  absl::StatusOr<std::string> answer = wire::AnswerReflection(wire::Chars(message));
  if (!answer.ok()) return exchange->Send(MakeGrpcEnd(answer.status()));
  exchange->Write(*std::move(answer));
}

void ReflectionEnd(LoopContext&, std::shared_ptr<Exchange> exchange) {
  exchange->Send(MakeGrpcEnd(absl::OkStatus()));
}

}  // namespace tensord::front
