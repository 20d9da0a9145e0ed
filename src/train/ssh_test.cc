// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "train/ssh.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tensord::train {
namespace {

using testing::ElementsAre;
using testing::EndsWith;

TEST(ParseHosts, TakesListsAndRangesAndNoHostTwice) {
  EXPECT_THAT(*ParseHosts("me@a,b"), ElementsAre("me@a", "b"));
  EXPECT_THAT(*ParseHosts("node[08-10]"), ElementsAre("node08", "node09", "node10"));
  for (const char* wrong : {"", ",", "a,a", "-oProxyCommand=x,b", "a[1-"}) {
    EXPECT_FALSE(ParseHosts(wrong).ok()) << wrong;
  }
}

TEST(ShellWord, IsOneWordOfTheOtherShellWhateverIsInIt) {
  EXPECT_EQ(ShellWord("--epochs=3"), "--epochs=3");
  EXPECT_EQ(ShellWord(""), "''");
  EXPECT_EQ(ShellWord("a b; $HOME"), "'a b; $HOME'");
  EXPECT_EQ(ShellWord("it's"), "'it'\\''s'");
}

TEST(AgentCommand, PlacesTheMachineAndKeepsTheTokenToItself) {
  const SshSetup setup{.hosts = {"a", "b"},
                       .options = {"-F", "file"},
                       .program = "/opt/tensord",
                       .folder = "/my work",
                       .environment = {"TF_X=1 2"},
                       .own_environment = {},
                       .arguments = {"--max-restarts", "2"},
                       .script = {"python", "x.py", "a b"},
                       .meeting = "a:29400",
                       .token = "secret"};
  const auto command = AgentCommand(setup, 1);
  EXPECT_THAT(std::vector(command.begin(), command.end() - 1),
              ElementsAre("ssh", "-o", "BatchMode=yes", "-F", "file", "--", "b"));
  EXPECT_EQ(command.back(),
            "cd '/my work' && exec env 'TF_X=1 2' /opt/tensord train --from-ssh --nnodes 2 "
            "--node-rank 1 --rdzv a:29400 --max-restarts 2 -- python x.py 'a b'");
  EXPECT_THAT(CheckCommand(setup, 0).back(), EndsWith("/opt/tensord train --version"));
}

TEST(GoesAlong, WhatTensorFlowAndPythonReadAndNothingElse) {
  EXPECT_TRUE(GoesAlong("TF_CPP_MIN_LOG_LEVEL=2"));
  EXPECT_TRUE(GoesAlong("PATH=/bin"));
  EXPECT_FALSE(GoesAlong("PATHS=/bin"));
  EXPECT_FALSE(GoesAlong("AWS_SECRET_ACCESS_KEY=x"));
}

}  // namespace
}  // namespace tensord::train
