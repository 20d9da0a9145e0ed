// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "config/access_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/text.h"
#include "config/testing/text_file.h"

namespace tensord::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kHex =
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

std::string ErrorOf(const std::string& text) {
  const TextFile file(text);
  const auto rules = LoadAccessRules({.access_rules_file = file.path()});
  return rules.ok() ? "no error" : std::string(base::Message(rules.status()));
}

TEST(AccessRules, WithoutAFileThereAreNone) {
  const auto rules = LoadAccessRules({});
  ASSERT_TRUE(rules.ok());
  EXPECT_FALSE(rules->has_value());
}

TEST(AccessRules, AFileIsRead) {
  const TextFile file(base::Cat(
      "identity { name: 'alice' token_sha256: '", kHex, "' certificate_name: 'a.example' }\n",
      "rule { identity: 'alice' model: 'half*' allow: INFER allow: READ }\n",
      "rule { identity: '*' allow: [READ, PROBE] }\nprobes_need_rule: true"));
  const auto rules = LoadAccessRules({.access_rules_file = file.path()});
  ASSERT_TRUE(rules.ok()) << rules.status();
  const AccessRules& read = **rules;
  EXPECT_TRUE(read.probes_need_rule);
  ASSERT_EQ(read.identities.size(), 1);
  EXPECT_EQ(read.identities[0].tokens.at(0), tls::Sha256("abc"));
  EXPECT_THAT(read.identities[0].certificate_names, ElementsAre("a.example"));
  ASSERT_EQ(read.rules.size(), 2);
  EXPECT_TRUE(read.rules[0].infer && read.rules[0].read);
  EXPECT_FALSE(read.rules[0].admin || read.rules[0].probe);
  EXPECT_THAT(read.rules[0].models, ElementsAre("half*"));
  EXPECT_TRUE(read.rules[1].models.empty());
}

TEST(AccessRules, WhatIsWrongIsNamed) {
  const std::string alice = base::Cat("identity { name: 'alice' token_sha256: '", kHex, "' }\n");
  EXPECT_THAT(ErrorOf("identity { name: 'a' token_sha256: 'abc' }"),
              HasSubstr("identity a: token_sha256 takes the 64 hex digits"));
  EXPECT_THAT(ErrorOf("identity { name: 'a' }"), HasSubstr("needs a token_sha256 or"));
  EXPECT_THAT(ErrorOf("identity { certificate_name: 'a' }"), HasSubstr("has no name"));
  EXPECT_THAT(ErrorOf("identity { name: '*' certificate_name: 'a' }"), HasSubstr("everybody"));
  EXPECT_THAT(ErrorOf(alice + alice), HasSubstr("alice is there twice"));
  EXPECT_THAT(ErrorOf(alice + base::Cat("identity { name: 'b' token_sha256: '", kHex, "' }")),
              HasSubstr("identity b has a token that is there already"));
  EXPECT_THAT(ErrorOf("rule { identity: 'bob' allow: READ }"), HasSubstr("identity \"bob\""));
  EXPECT_THAT(ErrorOf("rule { allow: READ }"), HasSubstr("names no identity"));
  EXPECT_THAT(ErrorOf("rule { identity: '*' }"), HasSubstr("allows nothing"));
  EXPECT_THAT(ErrorOf("rule { identity: '*' model: '' allow: READ }"), HasSubstr("empty model"));
  EXPECT_THAT(ErrorOf("rule { identity: '*' allow: EVERYTHING }"), HasSubstr(":1:"));
  EXPECT_EQ(LoadAccessRules({.access_rules_file = "/no/such/file"}).status().code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace tensord::config
