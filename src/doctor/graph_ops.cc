// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "doctor/graph_ops.h"

#include <optional>
#include <utility>

#include "base/protobuf_wire.h"
#include "base/status_macros.h"
#include "engine/signature_def.h"
#include "engine/tensorflow/graph_state.h"

namespace tensord::doctor {
namespace {

// Field numbers of tensorflow's saved_model.proto, meta_graph.proto, graph.proto, function.proto.
constexpr uint32_t kMetaGraphs = 2;
constexpr uint32_t kMetaInfo = 1;
constexpr uint32_t kTags = 4;
constexpr uint32_t kVersion = 5;
constexpr uint32_t kGraph = 2;
constexpr uint32_t kNodes = 1;
constexpr uint32_t kLibrary = 2;
constexpr uint32_t kFunctions = 1;
constexpr uint32_t kFunctionSignature = 1;
constexpr uint32_t kFunctionNodes = 3;
constexpr uint32_t kName = 1;    // Of OpDef.
constexpr uint32_t kNodeOp = 2;  // Of NodeDef.

std::string_view FieldOf(std::string_view message, uint32_t field) {
  for (base::WireReader reader(message); reader.Next();) {
    if (reader.field() == field && reader.type() == base::WireType::kBytes) return reader.bytes();
  }
  return {};
}

void ReadFunction(std::string_view bytes, std::set<std::string>* ops, std::set<std::string>* own) {
  for (base::WireReader function(bytes); function.Next();) {
    if (function.field() == kFunctionSignature) own->emplace(FieldOf(function.bytes(), kName));
    if (function.field() == kFunctionNodes) ops->emplace(FieldOf(function.bytes(), kNodeOp));
  }
}

std::set<std::string> OpsOf(std::string_view graph) {
  std::set<std::string> ops;
  std::set<std::string> own;
  for (base::WireReader reader(graph); reader.Next();) {
    if (reader.field() == kNodes) ops.emplace(FieldOf(reader.bytes(), kNodeOp));
    if (reader.field() != kLibrary) continue;
    for (base::WireReader library(reader.bytes()); library.Next();) {
      if (library.field() == kFunctions) ReadFunction(library.bytes(), &ops, &own);
    }
  }
  for (const std::string& name : own) ops.erase(name);
  ops.erase("");
  return ops;
}

void ReadInfo(std::string_view bytes, GraphFacts* facts) {
  for (base::WireReader info(bytes); info.Next();) {
    if (info.field() == kTags) facts->tags.emplace(info.bytes());
    if (info.field() == kVersion) facts->saved_by = info.bytes();
  }
}

}  // namespace

absl::StatusOr<GraphFacts> ReadGraph(std::string_view saved_model) {
  std::optional<std::string_view> chosen;
  base::WireReader reader(saved_model);
  while (reader.Next()) {
    if (reader.field() != kMetaGraphs || reader.type() != base::WireType::kBytes) continue;
    GraphFacts facts;
    ReadInfo(FieldOf(reader.bytes(), kMetaInfo), &facts);
    if (!chosen.has_value() || facts.tags.contains("serve")) chosen = reader.bytes();
  }
  if (!reader.ok() || !chosen.has_value()) {
    return absl::InvalidArgumentError("saved_model.pb is damaged or holds no graph");
  }
  GraphFacts facts;
  ReadInfo(FieldOf(*chosen, kMetaInfo), &facts);
  facts.ops = OpsOf(FieldOf(*chosen, kGraph));
  ASSIGN_OR_RETURN(facts.signatures,
                   engine::ParseSignatureDefs(*chosen, engine::kMetaGraphSignatureField));
  ASSIGN_OR_RETURN(engine::GraphFindings graph, engine::ExamineGraph(*chosen, facts.signatures));
  facts.stateful = std::move(graph.stateful_reason);
  return facts;
}

}  // namespace tensord::doctor
