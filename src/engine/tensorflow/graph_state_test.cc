// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "engine/tensorflow/graph_state.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "engine/testing/graph_bytes.h"

namespace tensord::engine {
namespace {

// A signature's name and the tensor that it fetches.
using Fetching = std::pair<std::string, std::string>;

std::string ReasonOf(const std::string& meta_graph, const std::vector<Fetching>& fetchings) {
  tensor::SignatureList signatures;
  for (const auto& [name, tensor_name] : fetchings) {
    signatures.emplace_back().name = name;
    signatures.back().outputs.emplace_back().tensor_name = tensor_name;
  }
  const auto findings = ExamineGraph(meta_graph, signatures);
  EXPECT_TRUE(findings.ok()) << findings.status();
  return findings.ok() ? findings->stateful_reason : "error";
}

TEST(WritesState, KnowsWritersFromLookAlikes) {
  for (const char* op :
       {"Assign", "AssignAdd", "AssignVariableOp", "AssignSubVariableOp", "ResourceApplyAdam",
        "ResourceScatterNdUpdate", "ApplyGradientDescent", "ScatterAdd", "LookupTableInsertV2",
        "LookupTableImportV2", "LookupTableRemoveV2", "QueueEnqueueV2", "QueueDequeueManyV2",
        "RngReadAndSkip", "StatefulUniform", "Stage", "MapUnstage", "IteratorV2", "CountUpTo"}) {
    EXPECT_TRUE(WritesState(op)) << op;
  }
  for (const char* op :
       {"ReadVariableOp", "VarHandleOp", "VariableV2", "LookupTableFindV2", "HashTableV2",
        "TensorScatterUpdate", "ScatterNd", "AccumulateNV2", "Assert", "MatMul", "QueueSizeV2",
        "StackPushV2", "TensorArrayWriteV3", "IteratorGetNext", "AnonymousIteratorV3",
        "StatelessRandomUniform", "InitializeTableFromTextFileV2", "MapDataset", "WriteFile"}) {
    EXPECT_FALSE(WritesState(op)) << op;
  }
}

TEST(StatefulReason, FollowsInputsAndControlInputsOnly) {
  const std::string graph = MetaGraphBytes({
      {.name = "x", .op = "Placeholder", .inputs = {}},
      {.name = "write", .op = "AssignAddVariableOp", .inputs = {"x"}},
      {.name = "y", .op = "Identity", .inputs = {"x:0"}},
      {.name = "z", .op = "Identity", .inputs = {"x", "^write"}},
      {.name = "restore", .op = "AssignVariableOp", .inputs = {"y"}},
  });
  EXPECT_EQ(ReasonOf(graph, {Fetching("pure", "y:0")}), "");
  EXPECT_EQ(ReasonOf(graph, {Fetching("pure", "y:0"), Fetching("writer", "z:0")}),
            "AssignAddVariableOp in signature 'writer'");
  // What only the init operation reaches does not count, nor does a tensor that is not there.
  EXPECT_EQ(ReasonOf(graph, {Fetching("__saved_model_init_op", "restore")}), "");
  EXPECT_EQ(ReasonOf(graph, {Fetching("s", "nowhere:0")}), "");
}

TEST(StatefulReason, LooksIntoFunctionsWhereverTheyAreNamed) {
  const std::string writer =
      FunctionBytes("writer", {{.name = "w", .op = "LookupTableInsertV2", .inputs = {}}});
  const std::string outer = FunctionBytes(
      "outer",
      {{.name = "c", .op = "PartitionedCall", .functions = {"writer"}, .listed_functions = {}}});
  const std::string loop = FunctionBytes(
      "loop", {{.name = "again", .op = "While", .functions = {"loop"}, .listed_functions = {}}});
  for (const NodeSpec& call : {
           NodeSpec{.name = "call",
          .op = "StatefulPartitionedCall",
          .functions = {"outer"},
          .listed_functions = {}},
           NodeSpec{.name = "call",
           .op = "Case",
           .functions = {},
           .listed_functions = {"loop", "outer"}},
           NodeSpec{.name = "call", .op = "outer", .inputs = {}},
       }) {
    const std::string graph = MetaGraphBytes({call}, {writer, outer, loop});
    EXPECT_EQ(ReasonOf(graph, {Fetching("s", "call:0")}), "LookupTableInsertV2 in signature 's'")
        << call.op;
  }
  // A function that nobody calls, and one that calls itself.
  const NodeSpec harmless{.name = "call",
                          .op = "PartitionedCall",
                          .functions = {"loop", "unknown"},
                          .listed_functions = {}};
  EXPECT_EQ(ReasonOf(MetaGraphBytes({harmless}, {writer, loop}), {Fetching("s", "call:0")}), "");
}

TEST(StatefulReason, EachSignatureIsLookedAtInFull) {
  // The second signature shares a node with the first, behind which the writer lies.
  const std::string graph = MetaGraphBytes({
      {.name = "shared", .op = "Identity", .inputs = {}},
      {.name = "w", .op = "Assign", .inputs = {"shared"}},
  });
  EXPECT_EQ(ReasonOf(graph, {Fetching("a", "shared:0"), Fetching("b", "w:0")}),
            "Assign in signature 'b'");
}

TEST(StatefulReason, GarbledGraphsAreAnError) {
  for (const std::string& bytes :
       {std::string("\x12\x05"), BytesField(2, "\x0a\x05"),
        BytesField(2, BytesField(1, "\x0a\x05")), BytesField(2, BytesField(2, "\x0a\x05"))}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ExamineGraph(bytes, {}).status()));
  }
}

TEST(OpsThatMayJoinRows, AreThoseThatAreNotPlainWhereverTheyAre) {
  const std::string plain = FunctionBytes(
      "plain",
      {{.name = "r", .op = "Relu", .inputs = {}}, {.name = "m", .op = "MatMul", .inputs = {"r"}}});
  const std::string sorting =
      FunctionBytes("sorting", {{.name = "u", .op = "Unique", .inputs = {}}});
  const std::string graph = MetaGraphBytes(
      {
          {.name = "x", .op = "Placeholder", .inputs = {}},
          {.name = "a", .op = "StatefulPartitionedCall", .inputs = {"x"}, .functions = {"plain"}},
          {.name = "b", .op = "PartitionedCall", .inputs = {"x"}, .functions = {"sorting"}},
          {.name = "c", .op = "plain", .inputs = {"x"}},
          {.name = "d", .op = "StatelessWhile", .inputs = {"a"}, .functions = {"plain"}},
          {.name = "e", .op = "MyOwnOp", .inputs = {"c"}},
      },
      {plain, sorting});
  tensor::SignatureList signatures;
  for (const char* node : {"a", "b", "c", "d", "e"}) {
    signatures.emplace_back().outputs.emplace_back().tensor_name = std::string(node) + ":0";
  }
  const auto findings = ExamineGraph(graph, signatures);
  ASSERT_TRUE(findings.ok()) << findings.status();
  EXPECT_EQ(findings->may_join_rows,
            (std::vector<std::string>{"", "Unique", "", "StatelessWhile", "MyOwnOp"}));
}

}  // namespace
}  // namespace tensord::engine
