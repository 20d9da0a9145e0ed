// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "config/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "config/parse.h"

namespace tensord::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Outcome {
  absl::Status status;
  ServerOptions options;
  std::vector<std::string> warnings;
};

// Of these arguments after "--model_base_path=/m".
Outcome Check(std::vector<std::string> arguments, Style style = Style::kServe) {
  arguments.insert(arguments.begin(), "--model_base_path=/m");
  CommandLine line = ParseServeStyle("tensord serve", arguments);
  EXPECT_EQ(line.err, "");
  Outcome outcome;
  outcome.options = line.options;
  outcome.status = CheckOptions(style, &outcome.options, &outcome.warnings);
  return outcome;
}

TEST(CheckOptions, AcceptsTheDefaultsAndAModel) {
  const Outcome outcome = Check({});
  EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_THAT(outcome.warnings, IsEmpty());
}

TEST(CheckOptions, BudgetsThatCouldServeNothingAreRefusedWithTheLeast) {
  for (const std::string_view option : {"--memory_limit_bytes", "--request_bytes_budget"}) {
    const Outcome outcome = Check({base::Cat(option, "=1")});
    EXPECT_EQ(outcome.status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(base::Message(outcome.status)),
                HasSubstr(base::Cat(option, " must be at least ")));
    EXPECT_TRUE(Check({base::Cat(option, "=0")}).status.ok());
    EXPECT_TRUE(Check({base::Cat(option, "=33554432")}).status.ok());
  }
}

TEST(CheckOptions, RefusesInTheOriginalsOrderAndWords) {
  struct Case {
    std::vector<std::string> arguments;
    std::string_view words;
  };
  const Case cases[] = {
      {{"--port=0", "--model_base_path="},
       "At least one of server_options.grpc_port or server_options.grpc_socket_path must be set."},
      {{"--use_alts_credentials", "--ssl_config_file=x", "--model_base_path="},
       "Either use_alts_credentials must be false or ssl_config_file must be empty."},
      {{"--model_base_path="},
       "Both server_options.model_base_path and server_options.model_config_file are empty!"},
  };
  for (const Case& c : cases) {
    const Outcome outcome = Check(c.arguments);
    EXPECT_EQ(outcome.status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(base::Message(outcome.status), c.words);
  }
  EXPECT_TRUE(Check({"--port=0", "--grpc_socket_path=s"}).status.ok());
}

TEST(CheckOptions, RefusesWhatWouldChangeSafetyOrAnswers) {
  for (const char* argument : {"--use_alts_credentials"}) {
    const Outcome outcome = Check({argument});
    EXPECT_EQ(outcome.status.code(), absl::StatusCode::kInvalidArgument) << argument;
    EXPECT_THAT(std::string(base::Message(outcome.status)), HasSubstr(" is refused: ")) << argument;
  }
  // The default, spelled out, changes nothing.
  EXPECT_TRUE(Check({"--use_alts_credentials=false", "--ssl_config_file="}).status.ok());
}

TEST(CheckOptions, RefusesValuesOutOfRange) {
  struct Case {
    std::string argument;
    std::string_view words;
  };
  const Case cases[] = {
      {"--port=65536", "--port must be from 0 to 65535, not 65536"},
      {"--rest_api_port=-1", "--rest_api_port must be from 0 to 65535, not -1"},
      {"--max_num_load_retries=-1", "--max_num_load_retries must be at least 0, not -1"},
      {"--per_process_gpu_memory_fraction=nan",
       "--per_process_gpu_memory_fraction must be a number from 0 (all) to 1, not nan"},
      {"--per_process_gpu_memory_fraction=-1",
       "--per_process_gpu_memory_fraction must be a number from 0 (all) to 1, not -1"},
      {"--loops=65", "--loops must be from 0 to 64, not 65"},
      {"--bind_address=localhost",
       "--bind_address takes an IPv4 or IPv6 address such as 127.0.0.1 or ::, not \"localhost\""},
  };
  for (const Case& c : cases) EXPECT_EQ(base::Message(Check({c.argument}).status), c.words);
  for (const char* address : {"127.0.0.1", "::", "::1", "0.0.0.0"}) {
    EXPECT_TRUE(Check({std::string("--bind_address=") + address}).status.ok()) << address;
  }
}

TEST(CheckOptions, LetsServeHaveOnePortForBoth) {
  const Outcome outcome = Check({"--rest_api_port=8500"}, Style::kServe);
  EXPECT_TRUE(outcome.status.ok());
  EXPECT_EQ(outcome.options.rest_api_port, 8500);
}

TEST(CheckOptions, LeavesRestOffOnGrpcsPortAsTheOriginalDoes) {
  const Outcome outcome = Check({"--rest_api_port=8500"}, Style::kOriginal);
  EXPECT_TRUE(outcome.status.ok());
  EXPECT_EQ(outcome.options.rest_api_port, 0);
  EXPECT_THAT(outcome.warnings, ElementsAre(HasSubstr("Skipped exporting HTTP/REST API.")));
}

TEST(CheckOptions, WarnsAboutOptionsThatOthersMakeUseless) {
  EXPECT_THAT(Check({"--monitoring_config_file=x"}).warnings,
              ElementsAre(HasSubstr("--monitoring_config_file has no effect without")));
  EXPECT_THAT(Check({"--model_config_file=x"}).warnings,
              ElementsAre(HasSubstr("--model_base_path and --model_name have no effect")));
}

TEST(CheckOptions, AnAdminListenerThatOthersReachMustKnowItsCallers) {
  EXPECT_TRUE(Check({"--admin_port=8502"}).status.ok());
  EXPECT_TRUE(Check({"--admin_port=8502", "--admin_bind_address=127.9.9.9"}).status.ok());
  EXPECT_TRUE(Check({"--admin_port=8502", "--admin_bind_address=::1"}).status.ok());
  const char* const outside = "--admin_bind_address=0.0.0.0";
  EXPECT_THAT(base::Message(Check({"--admin_port=8502", outside}).status),
              HasSubstr("its callers need a token or a client certificate"));
  EXPECT_TRUE(Check({"--admin_port=8502", outside, "--access_rules_file=f"}).status.ok());
  EXPECT_TRUE(Check({"--admin_port=8502", outside, "--tls_client_ca_file=f"}).status.ok());
  EXPECT_THAT(base::Message(Check({"--admin_port=8500"}).status),
              HasSubstr("is the port of other calls, too"));
  EXPECT_THAT(base::Message(Check({"--admin_port=8502", "--admin_bind_address=here"}).status),
              HasSubstr("takes an IPv4 or IPv6 address"));
}

}  // namespace
}  // namespace tensord::config
