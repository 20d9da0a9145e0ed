// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/handlers/access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "tls/digest.h"

namespace tensord::front {
namespace {

using config::AccessRules;
using testing::HasSubstr;

constexpr absl::StatusCode kOk = absl::StatusCode::kOk;
constexpr absl::StatusCode kWho = absl::StatusCode::kUnauthenticated;
constexpr absl::StatusCode kNo = absl::StatusCode::kPermissionDenied;

AccessRules SomeRules() {
  AccessRules rules;
  rules.identities = {{.name = "alice", .tokens = {tls::Sha256("a-token")}},
                      {.name = "operator", .tokens = {tls::Sha256("o-token")}},
                      {.name = "pod", .certificate_names = {"pod.example"}}};
  rules.rules = {{.identities = {"alice", "pod"}, .models = {"half*"}, .infer = true, .read = true},
                 {.identities = {"operator"}, .read = true, .admin = true},
                 {.identities = {"alice"}, .models = {"own"}, .admin = true},
                 {.identities = {"*"}, .models = {"public"}, .infer = true}};
  return rules;
}

// A caller with a token (empty: none) and names of a certificate.
absl::StatusCode CodeOf(const Access& access, const std::string& authorization, Operation operation,
                        std::string_view model, std::vector<std::string> names = {}) {
  RequestHead head;
  if (!authorization.empty()) head.headers.emplace_back("authorization", authorization);
  if (!names.empty()) {
    head.peer_names = std::make_shared<const std::vector<std::string>>(std::move(names));
  }
  return access.Check(head, operation, model).status.code();
}

TEST(Access, OnlyWhatARuleAllowsIsAllowed) {
  const Access access(SomeRules());
  const struct {
    const char* authorization;
    Operation operation;
    const char* model;
    absl::StatusCode code;
  } kCases[] = {
      {"Bearer a-token", Operation::kInfer, "half", kOk},
      {"bearer a-token", Operation::kInfer, "half_plus_two", kOk},
      {"Bearer a-token", Operation::kInfer, "other", kNo},
      {"Bearer a-token", Operation::kInfer, "Half", kNo},
      {"Bearer a-token", Operation::kInfer, "", kOk},
      {"Bearer a-token", Operation::kManage, "half", kNo},
      {"Bearer a-token", Operation::kManage, "own", kOk},
      {"Bearer a-token", Operation::kManage, "", kNo},
      {"Bearer o-token", Operation::kManage, "", kOk},
      {"Bearer o-token", Operation::kInfer, "half", kNo},
      {"Bearer o-token", Operation::kInfer, "public", kOk},
      {"", Operation::kInfer, "public", kOk},
      {"", Operation::kInfer, "half", kWho},
      {"", Operation::kRead, "public", kWho},
      {"Bearer wrong", Operation::kInfer, "half", kWho},
      {"Bearer wrong", Operation::kInfer, "public", kWho},
      {"Bearer ", Operation::kInfer, "half", kWho},
      {"Basic a-token", Operation::kInfer, "half", kWho},
      {"a-token", Operation::kInfer, "half", kWho},
      {"Bearer a-token ", Operation::kInfer, "half", kWho},
      {"", Operation::kProbe, "half", kOk},
      {"Bearer wrong", Operation::kProbe, "half", kOk},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(CodeOf(access, c.authorization, c.operation, c.model), c.code)
        << c.authorization << " on " << c.model;
  }
}

TEST(Access, ACertificateStandsForItsIdentity) {
  const Access access(SomeRules());
  EXPECT_EQ(CodeOf(access, "", Operation::kInfer, "half", {"x", "pod.example"}), kOk);
  EXPECT_EQ(CodeOf(access, "", Operation::kInfer, "other", {"pod.example"}), kNo);
  EXPECT_EQ(CodeOf(access, "", Operation::kInfer, "half", {"pod.example.evil"}), kWho);
  // A wrong token is not made good by a certificate.
  EXPECT_EQ(CodeOf(access, "Bearer wrong", Operation::kInfer, "half", {"pod.example"}), kWho);
}

// A proxy before the server may have checked the one, and the server the other.
TEST(Access, TwoAuthorizationHeadersAreNoCredentials) {
  const Access access(SomeRules());
  RequestHead head;
  head.headers.emplace_back("authorization", "Bearer a-token");
  head.headers.emplace_back("authorization", "Bearer o-token");
  const absl::Status status = access.Check(head, Operation::kInfer, "half").status;
  EXPECT_EQ(status.code(), kWho);
  EXPECT_THAT(std::string(base::Message(status)), HasSubstr("more than one such header"));
  EXPECT_EQ(access.CheckCaller(head).status.code(), kWho);
}

TEST(Access, ProbesCanBeBehindRules) {
  AccessRules rules = SomeRules();
  rules.probes_need_rule = true;
  rules.rules.push_back({.identities = {"alice"}, .probe = true});
  const Access access(std::move(rules));
  EXPECT_EQ(CodeOf(access, "", Operation::kProbe, ""), kWho);
  EXPECT_EQ(CodeOf(access, "Bearer o-token", Operation::kProbe, ""), kNo);
  EXPECT_EQ(CodeOf(access, "Bearer a-token", Operation::kProbe, ""), kOk);
}

TEST(Access, WhoGetsNothingIsRefusedBeforeTheBody) {
  AccessRules rules = SomeRules();
  RequestHead nobody;
  RequestHead wrong;
  wrong.headers.emplace_back("authorization", "Bearer wrong");
  EXPECT_TRUE(Access(rules).CheckCaller(nobody).status.ok());  // Something is public.
  EXPECT_EQ(Access(rules).CheckCaller(wrong).status.code(), kWho);
  rules.rules.pop_back();
  EXPECT_EQ(Access(rules).CheckCaller(nobody).status.code(), kWho);
}

TEST(Access, PatternsMatchWholeNames) {
  const struct {
    const char* pattern;
    const char* text;
    bool matches;
  } kCases[] = {
      {"half", "half", true},
      {"half", "half2", false},
      {"half", "hal", false},
      {"*", "", true},
      {"*", "any", true},
      {"a*c", "abc", true},
      {"a*c", "ac", true},
      {"a*c", "abcd", false},
      {"a?c", "abc", true},
      {"a?c", "ac", false},
      {"*b*", "abc", true},
      {"**a", "ba", true},
      {"", "", true},
      {"", "a", false},
      {"a.c", "abc", false},
      {"[a]", "a", false},
      {"half", "half.", false},
      {"half", "HALF", false},
      {"*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaa", false},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(MatchesPattern(c.pattern, c.text), c.matches) << c.pattern << " on " << c.text;
  }
}

}  // namespace
}  // namespace tensord::front
