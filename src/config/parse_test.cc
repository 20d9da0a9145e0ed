// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "config/parse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/option_table.h"
#include "config/warnings.h"

namespace tensord::config {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

CommandLine Original(const std::vector<std::string>& arguments) {
  return ParseOriginalStyle("tensorflow_model_server", arguments);
}
CommandLine Serve(const std::vector<std::string>& arguments) {
  return ParseServeStyle("tensord serve", arguments);
}

TEST(ParseOriginalStyle, ReadsFlagsAsTheOriginalDoes) {
  const CommandLine line = Original({"--port=8600", "--enable_batching", "--enable_profiler=false",
                                     "--model_name=", "--model_base_path=/a=b", "--port=8700"});
  EXPECT_EQ(line.options.port, 8700);
  EXPECT_TRUE(line.options.enable_batching);
  EXPECT_FALSE(line.options.enable_profiler);
  EXPECT_EQ(line.options.model_name, "");
  EXPECT_EQ(line.options.model_base_path, "/a=b");
  EXPECT_EQ(line.exit_code, std::nullopt);
  EXPECT_EQ(line.out, "");
  EXPECT_EQ(line.err, "");
}

TEST(ParseOriginalStyle, GoesOnWithAnUnknownFlag) {
  for (const char* argument : {"--no_such_flag=1", "positional", "-port=1", "--port", "--"}) {
    const CommandLine line = Original({argument, "--rest_api_port=8501"});
    EXPECT_THAT(line.out, StartsWith(std::string("unknown argument: ") + argument +
                                     "\nusage: tensorflow_model_server\nFlags:\n\t--port=8500  "))
        << argument;
    EXPECT_EQ(line.exit_code, std::nullopt) << argument;
    // All behind a bare "--" is left alone.
    EXPECT_EQ(line.options.rest_api_port, std::string(argument) == "--" ? 0 : 8501) << argument;
  }
}

TEST(ParseOriginalStyle, EndsWith255OnAValueThatCannotBeRead) {
  for (const char* argument : {"--port=x", "--port=", "--enable_batching=1", "--port=9999999999"}) {
    const CommandLine line = Original({argument, "--unknown"});
    EXPECT_THAT(line.out, StartsWith("usage: tensorflow_model_server\nFlags:\n")) << argument;
    EXPECT_THAT(line.err, HasSubstr("takes")) << argument;
    EXPECT_THAT(line.exit_code, Eq(255)) << argument;
  }
}

TEST(ParseOriginalStyle, HelpIsAFlagOnlyBeforeOtherUnknownOnes) {
  EXPECT_THAT(Original({"--port=1", "--help"}).exit_code, Eq(255));
  EXPECT_THAT(Original({"--help"}).out, HasSubstr("\t--enable_batching=false          \tbool\t"));
  EXPECT_THAT(Original({"--help"}).out,
              HasSubstr("\t--model_name=\"default\"           \tstring\t"));
  EXPECT_EQ(Original({"-h", "--help"}).exit_code, std::nullopt);
}

TEST(ParseServeStyle, TakesValuesWithAndWithoutEquals) {
  const CommandLine line = Serve(
      {"--port", "8600", "--rest_api_port=8601", "--enable_batching", "--enable_profiler", "false",
       "--model_name=", "--model_base_path", "/a=b", "--load_retry_interval_micros", "-1"});
  EXPECT_EQ(line.err, "");
  EXPECT_EQ(line.options.port, 8600);
  EXPECT_EQ(line.options.rest_api_port, 8601);
  EXPECT_TRUE(line.options.enable_batching);
  EXPECT_FALSE(line.options.enable_profiler);
  EXPECT_EQ(line.options.model_name, "");
  EXPECT_EQ(line.options.model_base_path, "/a=b");
  EXPECT_EQ(line.options.load_retry_interval_micros, -1);
  EXPECT_EQ(line.exit_code, std::nullopt);
}

TEST(ParseServeStyle, NamesTheNearestOptionForAnUnknownOne) {
  struct Case {
    std::vector<std::string> arguments;
    std::string words;
  };
  const Case cases[] = {
      {{"--rest_port=1"}, "there is no option --rest_port; did you mean --rest_api_port?"},
      {{"--model-base-path=/m"},
       "there is no option --model-base-path; did you mean --model_base_path?"},
      {{"--gpu"}, "there is no option --gpu; --help lists all"},
      {{"serve"}, "\"serve\" is no option; options begin with --"},
      {{"-port=1"}, "\"-port=1\" is no option; options begin with --"},
      {{"--port"}, "--port needs a value: --port=<int32>"},
      {{"--port", "--loops=1"}, "--port needs a value: --port=<int32>"},
      {{"--port", "x"}, "--port takes a value of type int32, not \"x\""},
      {{"--enable_batching", "yes"}, "\"yes\" is no option; options begin with --"},
      {{"--enable_batching=yes"}, "--enable_batching takes true or false, not \"yes\""},
      {{"--"}, "there is no option --; --help lists all"},
      {{""}, "\"\" is no option; options begin with --"},
  };
  for (const Case& c : cases) {
    const CommandLine line = Serve(c.arguments);
    EXPECT_EQ(line.err, "tensord: " + c.words + "\n");
    EXPECT_THAT(line.exit_code, Eq(2));
  }
}

TEST(ParseServeStyle, HelpNamesEveryOption) {
  const CommandLine line = Serve({"--port", "x", "--help"});
  EXPECT_THAT(line.exit_code, Eq(0));
  for (const Option& option : OptionTable()) {
    EXPECT_THAT(line.out, HasSubstr("\n  --" + std::string(option.name) + " "));
  }
}

TEST(Parse, WarnsOncePerGivenOptionWithoutEffect) {
  const std::vector<std::string> arguments = {"--enable_profiler", "--enable_profiler",
                                              "--grpc_max_threads=1", "--port=1"};
  const auto lines = ElementsAre(
      "--enable_profiler has no effect: models run in sandboxed workers, which no profiler session "
      "reaches");
  EXPECT_THAT(Original(arguments).warnings, lines);
  EXPECT_THAT(Serve(arguments).warnings, lines);
  EXPECT_THAT(Serve({"--port=1"}).warnings, IsEmpty());
}

TEST(Parse, BothStylesReadWhatToArgumentsWrites) {
  ServerOptions options;
  for (const Option& option : OptionTable()) {
    std::string value = "7";
    if (IsBool(option))
      value = IsDefault(option, options) && ValueText(option, options) == "true" ? "false" : "true";
    if (!option.choices.empty()) value = option.choices.substr(option.choices.rfind(',') + 1);
    if (option.name == "model_base_path") value = "/with space\nand \"more\"";
    ASSERT_TRUE(SetValue(option, value, &options).ok()) << option.name;
    EXPECT_FALSE(IsDefault(option, options)) << option.name;
  }
  EXPECT_EQ(Original(ToArguments(options)).options, options);
  EXPECT_EQ(Serve(ToArguments(options)).options, options);
}

TEST(NearestOption, IsEmptyForWhatIsFarOff) {
  EXPECT_EQ(NearestOption("prot"), "port");
  EXPECT_EQ(NearestOption("drain_timeout"), "drain_timeout_ms");
  EXPECT_EQ(NearestOption("quantum"), "");
  EXPECT_EQ(NearestOption(std::string(1'000'000, 'x')), "");
}

}  // namespace
}  // namespace tensord::config
