// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

// The small parts that bytes pass through on their way in and out.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>

#include "front/body_buffer.h"
#include "front/http1/chunked.h"
#include "front/http1/head.h"
#include "front/http2/frame_scanner.h"
#include "front/out_queue.h"
#include "front/token_bucket.h"

namespace tensord::front {
namespace {

using ::testing::ElementsAre;

// Takes `most` bytes a write, then wants to wait.
class StingyStream final : public ByteStream {
 public:
  explicit StingyStream(size_t most) : most_(most) {}
  int fd() const override { return -1; }
  IoResult Read(std::span<std::byte>) override { return {.kind = IoResult::kEnd}; }
  IoResult Write(std::span<const iovec> pieces) override {
    if (std::exchange(waits_, !waits_)) return {.kind = IoResult::kWantWrite};
    size_t taken = 0;
    for (const iovec& piece : pieces) {
      const size_t n = std::min(piece.iov_len, most_ - taken);
      written.append(static_cast<const char*>(piece.iov_base), n);
      taken += n;
    }
    return {.kind = IoResult::kDone, .bytes = taken};
  }
  void ShutdownWrite() override {}

  std::string written;

 private:
  const size_t most_;
  bool waits_ = false;
};

TEST(OutQueue, KeepsOrderHoweverLittleIsTaken) {
  for (const size_t most : {97u, 3000u, 1'000'000u}) {
    StingyStream stream(most);
    OutQueue queue;
    std::string expected;
    const auto add = [&](std::string text) {
      expected += text;
      const auto owner = std::make_shared<const std::string>(std::move(text));
      owner->size() % 2 == 0 ? queue.AppendShared(*owner, owner) : queue.Append(*owner);
    };
    for (int i = 0; i < 300; ++i) {
      add(std::string(static_cast<size_t>(i * 17 % 5000), static_cast<char>('a' + i % 26)));
      if (i % 50 == 0) queue.WriteTo(&stream);
    }
    while (!queue.empty()) queue.WriteTo(&stream);
    EXPECT_TRUE(stream.written == expected) << most;
  }
}

TEST(OutQueue, LargeBytesAreNotCopiedAndTheirOwnerGoesWithThem) {
  StingyStream stream(1 << 20);
  OutQueue queue;
  auto owner = std::make_shared<const std::string>(10'000, 'x');
  queue.AppendShared(*owner, owner);
  EXPECT_EQ(owner.use_count(), 2);
  queue.WriteTo(&stream);
  EXPECT_EQ(owner.use_count(), 1);
}

TEST(BodyBuffer, IsChargedForWhatCame) {
  base::ByteBudget budget(1'000'000);
  BodyBuffer body(&budget);
  ASSERT_TRUE(body.MakeRoom(2'000'000'000));
  EXPECT_EQ(budget.used(), 0u);
  const std::vector<std::byte> some(1000);
  ASSERT_TRUE(body.Append(some, 2'000'000'000));
  EXPECT_EQ(budget.used(), 1000u);
  const std::vector<std::byte> more(1'000'000);
  EXPECT_FALSE(body.Append(more, 2'000'000'000));
  EXPECT_EQ(body.size(), 1000u);
  body.Clear();
  EXPECT_EQ(budget.used(), 0u);
}

TEST(BodyBuffer, WritableIsNoMoreThanTheBudgetHas) {
  base::ByteBudget budget(10'000);
  BodyBuffer body(&budget);
  ASSERT_TRUE(body.MakeRoom(100'000));
  EXPECT_EQ(body.Writable(9'000).size(), 9'000u);
  body.Commit(9'000);
  EXPECT_TRUE(body.Writable(9'000).empty());
}

TEST(BodyBuffer, GoesOnInMemoryThatItIsLent) {
  base::ByteBudget budget(1'000'000);
  BodyBuffer body(&budget);
  std::vector<std::byte> sent(100'000);
  for (size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::byte>(i * 31 >> 3);
  const std::span<const std::byte> all(sent);
  ASSERT_TRUE(body.Append(all.first(10)));
  auto lent = std::make_shared<std::vector<std::byte>>(90'000);
  const std::weak_ptr<std::vector<std::byte>> owner = lent;
  body.ReceiveInto(*lent, lent);
  const std::byte* const place = lent->data();
  lent.reset();
  ASSERT_TRUE(body.Append(all.subspan(10, 89'990), 100'000));
  EXPECT_EQ(body.bytes().data(), place);
  EXPECT_TRUE(std::ranges::equal(body.bytes(), all.first(90'000)));
  EXPECT_GE(budget.used(), 90'000u);
  EXPECT_FALSE(owner.expired());
  ASSERT_TRUE(body.Append(all.subspan(90'000))) << "more than was lent";
  EXPECT_TRUE(std::ranges::equal(body.bytes(), all));
  EXPECT_TRUE(owner.expired());
}

TEST(BodyBuffer, GivesBackWhatItWasLent) {
  base::ByteBudget budget(1'000'000);
  BodyBuffer body(&budget);
  auto lent = std::make_shared<std::vector<std::byte>>(1000);
  body.ReceiveInto(*lent, lent);
  ASSERT_TRUE(body.Append(std::vector<std::byte>(500)));
  EXPECT_EQ(lent.use_count(), 2);
  body.Clear();
  EXPECT_EQ(lent.use_count(), 1);
  EXPECT_EQ(body.size(), 0u);
  ASSERT_TRUE(body.Append(std::vector<std::byte>(500)));
  EXPECT_NE(body.bytes().data(), lent->data());
}

TEST(TokenBucket, AllowsABurstThenARate) {
  const absl::Time start = absl::UnixEpoch();
  TokenBucket bucket(3, 2, start);
  int taken = 0;
  while (bucket.Take(start)) ++taken;
  EXPECT_EQ(taken, 3);
  EXPECT_TRUE(bucket.Take(start + absl::Seconds(1)));
  bucket.Give(100);
  taken = 0;
  while (bucket.Take(start + absl::Seconds(1))) ++taken;
  EXPECT_EQ(taken, 3);
}

// Feeds a text in every way of cutting it in three, and expects the same body each time.
TEST(ChunkedDecoder, CutsDoNotMatter) {
  const std::string text =
      "5;a=b\r\nhello\r\n1\r\n \r\n00005\r\nworld\r\n000\r\nx: y\r\nz: \r\n\r\nrest";
  for (size_t first = 0; first <= text.size(); ++first) {
    for (size_t second = first; second <= text.size(); ++second) {
      ChunkedDecoder decoder;
      std::string body;
      size_t consumed = 0;
      bool ended = false;
      for (const std::string_view part : {std::string_view(text).substr(0, first),
                                          std::string_view(text).substr(first, second - first),
                                          std::string_view(text).substr(second)}) {
        std::string_view left = part;
        while (!ended) {
          const ChunkedDecoder::Step step = decoder.Next(left);
          ASSERT_NE(step.kind, ChunkedDecoder::Kind::kBad);
          left.remove_prefix(step.taken);
          consumed += step.taken;
          body += step.data;
          ended = step.kind == ChunkedDecoder::Kind::kEnd;
          if (step.kind == ChunkedDecoder::Kind::kNeedMore) break;
        }
      }
      ASSERT_TRUE(ended);
      ASSERT_EQ(body, "hello world");
      ASSERT_EQ(text.substr(consumed), "rest");
    }
  }
}

TEST(ScanHead, FindsTheEmptyLineWhereverTheReadsEnd) {
  const std::string text = "GET / HTTP/1.1\r\nHost: a\r\n\r\nbody";
  for (size_t first = 0; first < text.size(); ++first) {
    const HeadScan before = ScanHead(std::string_view(text).substr(0, first), 0);
    if (before.kind == HeadScan::kComplete) {
      EXPECT_GE(first, 27u);
      continue;
    }
    const HeadScan after = ScanHead(text, first);
    EXPECT_EQ(after.kind, HeadScan::kComplete) << first;
    EXPECT_EQ(after.bytes, 27u) << first;
  }
}

TEST(FrameScanner, FindsEveryHeadWhereverTheReadsEnd) {
  std::string text = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  const auto add = [&text](char type, char flags, char stream, std::string payload) {
    text += std::string{0, 0, static_cast<char>(payload.size()), type, flags, 0, 0, 0, stream};
    text += payload;
  };
  add(4, 0, 0, "");
  add(1, 4, 1, "headers");
  add(2, 0, 3, std::string("\x80\0\0\7w", 5));
  add(2, 0, 5, "");
  add(0, 1, 1, std::string(100, 'x'));
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    FrameScanner scanner;
    std::vector<int> types;
    std::vector<int> parents;
    for (const std::string_view part :
         {std::string_view(text).substr(0, cut), std::string_view(text).substr(cut)}) {
      size_t at = 0;
      while (const auto frame = scanner.Next(std::as_bytes(std::span(part)), &at)) {
        types.push_back(frame->type);
        if (frame->type == 2) parents.push_back(frame->parent);
      }
      EXPECT_EQ(at, part.size());
    }
    ASSERT_THAT(types, ElementsAre(4, 1, 2, 2, 0)) << cut;
    ASSERT_THAT(parents, ElementsAre(7, 0)) << cut;
  }
}

TEST(ClosedStreams, RemembersTheLastOnesAndOwnsUpToTheRest) {
  ClosedStreams closed;
  EXPECT_EQ(closed.Find(1), ClosedStreams::Kind::kUnknown);
  for (int32_t id = 1; id < 401; id += 2) closed.Add(id, /*by_server=*/id % 4 == 1);
  EXPECT_EQ(closed.Find(1), ClosedStreams::Kind::kForgotten);
  EXPECT_EQ(closed.Find(397), ClosedStreams::Kind::kByServer);
  EXPECT_EQ(closed.Find(399), ClosedStreams::Kind::kByClient);
  EXPECT_EQ(closed.Find(401), ClosedStreams::Kind::kUnknown);
}

}  // namespace
}  // namespace tensord::front
