// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bench/client.h"
#include "bench/mix.h"
#include "bench/plan.h"

// From what the user named to bytes that can be sent.
namespace tensord::bench {

struct MixSettings {
  std::vector<MixEntry> entries = {};
  bool rest = false;
  bool oip = false;  // The Open Inference Protocol.
  bool one_shot = false;
  int64_t rows = 1;  // Of made-up inputs.
  // For the entries that say nothing else.
  absl::Duration deadline = absl::InfiniteDuration();
  std::string criticality = {};
  HeaderList headers = {};
};

// Reads files, and asks the server where an entry has neither a file nor inputs. Errors name entry
// and file.
absl::StatusOr<Mix> MakeMix(const Address& address, const MixSettings& settings);

// What one file asks for. `method` is the gRPC method's name, such as "Predict".
struct Body {
  std::string method;
  std::string bytes;
};
// A serialized request of `method`, a JSON body (rest), or a TFRecord file of PredictionLogs as
// warm-up has (gRPC). INVALID_ARGUMENT says what the bytes look like instead. Pure.
absl::StatusOr<std::vector<Body>> BodiesOf(std::string_view file, std::string_view method,
                                           bool rest);

// Sends one of each kind (of the first hundred), and fails as the first that fails: in words that
// tell what to do.
absl::Status TryEach(const Address& address, bool rest, const Mix& mix, uint64_t* sent);

}  // namespace tensord::bench
