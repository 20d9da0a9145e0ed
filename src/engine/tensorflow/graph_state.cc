// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "engine/tensorflow/graph_state.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <vector>

#include "base/protobuf_wire.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "engine/tensorflow/plain_ops.h"

namespace tensord::engine {
namespace {

using base::WireReader;
using base::WireType;

// Op names start with one of these. Versions (V2, V3) follow, so prefixes are enough; the few that
// only look alike are named in kHarmless. Step-local state (TensorArray, Stack, anonymous
// iterators) is not here, nor are the Initialize* ops of tables, which do the same each time.
constexpr std::array<std::string_view, 42> kWriters = {
    "Assign",               // Assign, AssignAdd, AssignVariableOp, AssignAddVariableOp, ...
    "ResourceApply",        // Optimizers.
    "ResourceSparseApply",  //
    "ResourceScatter",      //
    "ResourceStridedSliceAssign",
    "ResourceAccumulatorApplyGradient",
    "ResourceAccumulatorTakeGradient",
    "ResourceAccumulatorSetGlobalStep",
    "ResourceCountUpTo",
    "StridedSliceAssign",
    "Apply",        // ApplyAdam, ... on reference variables.
    "SparseApply",  //
    "ScatterAdd",
    "ScatterSub",
    "ScatterMul",
    "ScatterDiv",
    "ScatterMin",
    "ScatterMax",
    "ScatterUpdate",
    "ScatterNdAdd",
    "ScatterNdSub",
    "ScatterNdMax",
    "ScatterNdMin",
    "ScatterNdUpdate",
    "CountUpTo",
    "DestroyResourceOp",
    "LookupTableInsert",
    "LookupTableRemove",
    "LookupTableImport",
    "Queue",  // Enqueue, dequeue and close; Size and IsClosed are excepted below.
    "Barrier",
    "Accumulator",
    "SparseAccumulator",
    "Stage",
    "Unstage",
    "OrderedMap",
    "MapStage",
    "MapUnstage",
    "MapClear",
    "RngSkip",
    "RngReadAndSkip",
    "GetSessionHandle",
};
constexpr std::array<std::string_view, 12> kWholeNames = {
    "Iterator",    // Named iterators move on with each run; anonymous ones live one run.
    "IteratorV2",  //
    "OneShotIterator",
    "StatefulUniform",
    "StatefulUniformInt",
    "StatefulUniformFullInt",
    "StatefulStandardNormal",
    "StatefulStandardNormalV2",
    "StatefulTruncatedNormal",
    "StatefulRandomBinomial",
    "DestroyTemporaryVariable",
    "DeleteSessionTensor",
};
constexpr std::array<std::string_view, 10> kHarmless = {
    "QueueSize",
    "QueueSizeV2",
    "QueueIsClosed",
    "QueueIsClosedV2",
    "BarrierReadySize",
    "BarrierIncompleteSize",
    "AccumulatorNumAccumulated",
    "StageSize",
    "StagePeek",
    "DestroyTemporaryVariable",
};

// One NodeDef, as far as it matters here. Views into the MetaGraphDef.
struct Node {
  std::string_view op;
  std::vector<std::string_view> inputs;  // Names of nodes, without "^" and ":1".
  std::vector<std::string_view> functions;
};

// A function's nodes; all of them count, because a function runs its stateful nodes whether or not
// its outputs need them.
using Nodes = std::vector<Node>;

struct Graph {
  std::map<std::string_view, Node> nodes;
  std::map<std::string_view, Nodes> functions;
};

absl::Status MalformedGraph() {
  return absl::InvalidArgumentError("the model's MetaGraphDef is no valid protobuf message");
}

std::string_view NodeName(std::string_view input) {
  if (input.starts_with('^')) input.remove_prefix(1);
  return input.substr(0, input.find(':'));
}

// NameAttrList: name = 1, attr = 2. The attrs may name functions, too, but a function's own body
// says what it calls.
void AddFunctionName(std::string_view name_attr_list, std::vector<std::string_view>* out) {
  for (WireReader reader(name_attr_list); reader.Next();) {
    if (reader.field() == 1 && reader.type() == WireType::kBytes) out->push_back(reader.bytes());
  }
}

// AttrValue: list = 1 (ListValue: func = 9), func = 10.
void AddFunctions(std::string_view attr_value, std::vector<std::string_view>* out) {
  for (WireReader reader(attr_value); reader.Next();) {
    if (reader.type() != WireType::kBytes) continue;
    if (reader.field() == 10) AddFunctionName(reader.bytes(), out);
    if (reader.field() != 1) continue;
    for (WireReader list(reader.bytes()); list.Next();) {
      if (list.field() == 9 && list.type() == WireType::kBytes) AddFunctionName(list.bytes(), out);
    }
  }
}

// NodeDef: name = 1, op = 2, input = 3, attr = 5 (map entry: value = 2).
absl::Status ParseNode(std::string_view bytes, std::string_view* name, Node* node) {
  WireReader reader(bytes);
  while (reader.Next()) {
    if (reader.type() != WireType::kBytes) continue;
    switch (reader.field()) {
      case 1:
        *name = reader.bytes();
        break;
      case 2:
        node->op = reader.bytes();
        break;
      case 3:
        node->inputs.push_back(NodeName(reader.bytes()));
        break;
      case 5:
        for (WireReader entry(reader.bytes()); entry.Next();) {
          if (entry.field() == 2) AddFunctions(entry.bytes(), &node->functions);
        }
        break;
      default:
        break;
    }
  }
  return reader.ok() ? absl::OkStatus() : MalformedGraph();
}

// FunctionDef: signature = 1 (OpDef: name = 1), node_def = 3.
absl::Status ParseFunction(std::string_view bytes, Graph* graph) {
  std::string_view name;
  Nodes nodes;
  WireReader reader(bytes);
  while (reader.Next()) {
    if (reader.type() != WireType::kBytes) continue;
    if (reader.field() == 1) {
      for (WireReader op(reader.bytes()); op.Next();) {
        if (op.field() == 1) name = op.bytes();
      }
    } else if (reader.field() == 3) {
      std::string_view ignored;
      RETURN_IF_ERROR(ParseNode(reader.bytes(), &ignored, &nodes.emplace_back()));
    }
  }
  if (!reader.ok()) return MalformedGraph();
  graph->functions.insert_or_assign(name, std::move(nodes));
  return absl::OkStatus();
}

// FunctionDefLibrary: function = 1.
absl::Status ParseLibrary(std::string_view bytes, Graph* graph) {
  WireReader reader(bytes);
  while (reader.Next()) {
    if (reader.field() != 1 || reader.type() != WireType::kBytes) continue;
    RETURN_IF_ERROR(ParseFunction(reader.bytes(), graph));
  }
  return reader.ok() ? absl::OkStatus() : MalformedGraph();
}

// GraphDef: node = 1, library = 2.
absl::Status ParseGraph(std::string_view bytes, Graph* graph) {
  WireReader reader(bytes);
  while (reader.Next()) {
    if (reader.type() != WireType::kBytes) continue;
    if (reader.field() == 1) {
      std::string_view name;
      Node node;
      RETURN_IF_ERROR(ParseNode(reader.bytes(), &name, &node));
      graph->nodes.insert_or_assign(name, std::move(node));
    } else if (reader.field() == 2) {
      RETURN_IF_ERROR(ParseLibrary(reader.bytes(), graph));
    }
  }
  return reader.ok() ? absl::OkStatus() : MalformedGraph();
}

// The first op of a kind that is reachable from the named nodes; empty when there is none.
class Search {
 public:
  using Kind = bool (*)(std::string_view op);

  Search(const Graph& graph, Kind kind) : graph_(graph), kind_(kind) {}

  std::string_view First(std::vector<std::string_view> nodes) {
    while (!nodes.empty()) {
      const std::string_view name = nodes.back();
      nodes.pop_back();
      const auto at = graph_.nodes.find(name);
      if (at == graph_.nodes.end() || !seen_nodes_.insert(name).second) continue;
      const std::string_view found = FindIn(at->second);
      if (!found.empty()) return found;
      nodes.insert(nodes.end(), at->second.inputs.begin(), at->second.inputs.end());
    }
    return {};
  }

 private:
  // The node itself, or what the functions it calls do.
  std::string_view FindIn(const Node& node) {
    if (Counts(node.op)) return node.op;
    std::vector<std::string_view> functions = node.functions;
    functions.push_back(node.op);  // An op may be a function's name.
    while (!functions.empty()) {
      const auto at = graph_.functions.find(functions.back());
      functions.pop_back();
      if (at == graph_.functions.end() || !seen_functions_.insert(at->first).second) continue;
      for (const Node& inner : at->second) {
        if (Counts(inner.op)) return inner.op;
        functions.insert(functions.end(), inner.functions.begin(), inner.functions.end());
        functions.push_back(inner.op);
      }
    }
    return {};
  }

  // A call of a function by its name is what the function does.
  bool Counts(std::string_view op) const { return kind_(op) && !graph_.functions.contains(op); }

  const Graph& graph_;
  const Kind kind_;
  std::set<std::string_view> seen_nodes_;
  std::set<std::string_view> seen_functions_;
};

absl::StatusOr<Graph> ParseMetaGraph(std::string_view meta_graph_def) {
  Graph graph;
  WireReader reader(meta_graph_def);
  while (reader.Next()) {
    if (reader.field() != 2 || reader.type() != WireType::kBytes) continue;  // graph_def
    RETURN_IF_ERROR(ParseGraph(reader.bytes(), &graph));
  }
  if (!reader.ok()) return MalformedGraph();
  return graph;
}

std::vector<std::string_view> Fetched(const tensor::Signature& signature) {
  std::vector<std::string_view> fetched;
  for (const tensor::Endpoint& output : signature.outputs) {
    fetched.push_back(NodeName(output.tensor_name));
  }
  return fetched;
}

template <size_t n>
bool Contains(const std::array<std::string_view, n>& list, std::string_view op) {
  return std::find(list.begin(), list.end(), op) != list.end();
}

}  // namespace

bool WritesState(std::string_view op) {
  if (Contains(kHarmless, op)) return false;
  return Contains(kWholeNames, op) ||
         std::any_of(kWriters.begin(), kWriters.end(),
                     [op](std::string_view prefix) { return op.starts_with(prefix); });
}

absl::StatusOr<GraphFindings> ExamineGraph(std::string_view meta_graph_def,
                                           const tensor::SignatureList& signatures) {
  ASSIGN_OR_RETURN(const Graph graph, ParseMetaGraph(meta_graph_def));
  GraphFindings findings;
  for (const tensor::Signature& signature : signatures) {
    const auto joins = [](std::string_view op) { return !IsPlainOp(op); };
    findings.may_join_rows.emplace_back(Search(graph, joins).First(Fetched(signature)));
    // The front runs neither the init nor the train operation.
    if (!findings.stateful_reason.empty() || signature.name.starts_with("__saved_model_")) continue;
    const std::string_view writer = Search(graph, WritesState).First(Fetched(signature));
    if (writer.empty()) continue;
    findings.stateful_reason = base::Cat(writer, " in signature '", signature.name, "'");
  }
  return findings;
}

}  // namespace tensord::engine
