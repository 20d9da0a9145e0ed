// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "config/access_rules.h"
#include "front/exchange.h"

namespace tensord::front {

// What a call wants to do.
enum class Operation : uint8_t {
  kInfer,   // Run a model.
  kRead,    // Status, metadata, list of models.
  kManage,  // Change which models are served.
  kProbe,   // Liveness, readiness, health, metrics.
};

// The rules of --access_rules_file, ready to be asked. Pure: no clock, no log.
// Threads: any; it never changes.
class Access {
 public:
  explicit Access(config::AccessRules rules) : rules_(std::move(rules)) {}

  struct Verdict {
    absl::Status status;  // UNAUTHENTICATED: nobody known calls; PERMISSION_DENIED: not for them.
    std::string who;      // The identities that the caller proved; empty: none.
  };
  // `model` is the name that will be looked up, never the text it was parsed from. Empty: the call
  // concerns none, so that reading takes a rule for any model, and managing one for every model.
  Verdict Check(const RequestHead& caller, Operation operation, std::string_view model) const;

  // Whether anything at all may be allowed to this caller, before its body is read.
  Verdict CheckCaller(const RequestHead& caller) const;

 private:
  struct Caller {
    std::vector<const config::AccessRules::Identity*> identities;
    bool bad_credentials = false;  // It showed a token that is none of ours.
  };

  Caller Identify(const RequestHead& head) const;
  bool IsFor(const config::AccessRules::Rule& rule, const Caller& caller) const;

  const config::AccessRules rules_;
};

// Whether `text` is what the pattern says: * is any text, ? any byte.
bool MatchesPattern(std::string_view pattern, std::string_view text);

// The rules that hold now; null without any. Threads: any.
class AccessSlot {
 public:
  std::shared_ptr<const Access> Get() const {
    base::MutexLock lock(&mu_);
    return access_;
  }
  void Set(std::shared_ptr<const Access> access) {
    base::MutexLock lock(&mu_);
    access_.swap(access);
  }

 private:
  mutable base::Mutex mu_;
  std::shared_ptr<const Access> access_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tensord::front
