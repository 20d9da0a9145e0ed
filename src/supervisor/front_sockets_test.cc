// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "supervisor/front_sockets.h"

#include <gtest/gtest.h>

namespace tensord::supervisor {
namespace {

TEST(FrontSockets, SurviveTheCommandLine) {
  const FrontSockets one{.loops = {{.grpc_fd = 4}}};
  EXPECT_EQ(EncodeFrontSockets(one), "4,-1,-1,-1,-1");
  EXPECT_EQ(DecodeFrontSockets("4,-1,-1,-1,-1").value(), one);
  const FrontSockets two{
      .loops = {{4, 5, 6, 9, 10}, {7, 8, -1, -1, -1}}, .listen_when_loaded = true, .kept_fd = 12};
  EXPECT_EQ(EncodeFrontSockets(two), "+4,5,6,9,10;7,8,-1,-1,-1/12");
  EXPECT_EQ(DecodeFrontSockets(EncodeFrontSockets(two)).value(), two);
}

TEST(FrontSockets, RefuseAnythingElse) {
  for (const char* text :
       {"", "+", "4", "4,5", "4,5,6", "4,5,6,7,8,", "4,5,6,7,8;", "4,5,6,7,8;9", "4,5,6,7,8,9",
        "4;5;6;7;8", "a,b,c,d,e", "4,5,-2,7,8", "4,5,99999999999,7,8", "4, 5,6,7,8", "4,5,6,7,8/",
        "4,5,6,7,8/9;", "4,5,6,7,8/9/9", "/9", "4,5,6,7,8 "}) {
    EXPECT_FALSE(DecodeFrontSockets(text).ok()) << text;
  }
}

}  // namespace
}  // namespace tensord::supervisor
