// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "engine/tensorflow/load.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/protobuf_wire.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "engine/signature_def.h"
#include "engine/tensorflow/graph_state.h"
#include "engine/tensorflow/missing_op.h"
#include "engine/tensorflow/run.h"
#include "engine/tensorflow/session_overrides.h"
#include "engine/unservable.h"

namespace tensord::engine {
namespace {

struct BufferDeleter {
  const TensorFlowApi* api;
  void operator()(TF_Buffer* buffer) const { api->TF_DeleteBuffer(buffer); }
};
struct OptionsDeleter {
  const TensorFlowApi* api;
  void operator()(TF_SessionOptions* options) const { api->TF_DeleteSessionOptions(options); }
};

absl::Status LoadOpLibraries(const TensorFlowApi& api, const std::vector<std::string>& libraries) {
  for (const std::string& library : libraries) {
    const StatusPointer status = NewStatus(api);
    TF_Library* handle = api.TF_LoadLibrary(library.c_str(), status.get());
    RETURN_IF_ERROR(base::WithContext(ToStatus(api, status.get()),
                                      base::Cat("loading the op library ", library, ": ")));
    // The library stays; only the handle goes.
    api.TF_DeleteLibraryHandle(handle);
  }
  return absl::OkStatus();
}

// The format before SavedModel has the code that the original gives it; TensorFlow's own error
// would speak of a missing file.
absl::Status CheckFormat(const std::string& directory) {
  const auto has = [&directory](const char* name) {
    return access(base::Cat(directory, "/", name).c_str(), F_OK) == 0;
  };
  if (has("saved_model.pb") || has("saved_model.pbtxt") || !has("export.meta")) {
    return absl::OkStatus();
  }
  return absl::UnimplementedError(
      base::Cat("loading ", directory,
                ": it holds a SessionBundle (export.meta), the format before SavedModel, which is "
                "read no more; export the model again with tf.saved_model.save"));
}

// The entries of MetaGraphDef.signature_def as a tensorflow.serving.SignatureDefMap, sorted by key
// (they come in another order in each process).
std::string CopySignatureDefMap(std::string_view meta_graph_def) {
  std::map<std::string, std::string_view> entries;
  for (base::WireReader reader(meta_graph_def); reader.Next();) {
    if (reader.field() != kMetaGraphSignatureField || reader.type() != base::WireType::kBytes) {
      continue;
    }
    std::string key;
    for (base::WireReader entry(reader.bytes()); entry.Next();) {
      if (entry.field() == 1) key = entry.bytes();
    }
    entries.insert_or_assign(std::move(key), reader.bytes());
  }
  std::string map;
  for (const auto& [key, entry] : entries) {
    base::AppendBytesField(kSignatureDefMapField, entry, &map);
  }
  return map;
}

std::vector<std::string> ListDevices(const TensorFlowApi& api, TF_Session* session) {
  std::vector<std::string> names;
  const StatusPointer status = NewStatus(api);
  TF_DeviceList* devices = api.TF_SessionListDevices(session, status.get());
  if (devices == nullptr) return names;
  for (int i = 0; i < api.TF_DeviceListCount(devices); ++i) {
    const char* name = api.TF_DeviceListName(devices, i, status.get());
    if (name != nullptr) names.emplace_back(name);
  }
  api.TF_DeleteDeviceList(devices);
  return names;
}

// Opens the session and gives the serialized MetaGraphDef.
absl::StatusOr<std::string> OpenSession(const TensorFlowApi& api, const LoadOptions& options,
                                        SessionHandle* session) {
  const StatusPointer status = NewStatus(api);
  const std::unique_ptr<TF_SessionOptions, OptionsDeleter> session_options(
      api.TF_NewSessionOptions(), OptionsDeleter{&api});
  api.TF_SetConfig(session_options.get(), options.session_config.data(),
                   options.session_config.size(), status.get());
  RETURN_IF_ERROR(base::WithContext(ToStatus(api, status.get()), "the session's ConfigProto: "));
  std::vector<const char*> tags;
  for (const std::string& tag : options.tags) tags.push_back(tag.c_str());
  const std::unique_ptr<TF_Buffer, BufferDeleter> meta_graph(api.TF_NewBuffer(),
                                                             BufferDeleter{&api});
  session->graph = api.TF_NewGraph();
  session->session = api.TF_LoadSessionFromSavedModel(
      session_options.get(), nullptr, options.directory.c_str(), tags.data(),
      static_cast<int>(tags.size()), session->graph, meta_graph.get(), status.get());
  RETURN_IF_ERROR(base::WithContext(ExplainMissingOp(ToStatus(api, status.get())),
                                    base::Cat("loading ", options.directory, ": ")));
  return std::string(static_cast<const char*>(meta_graph->data), meta_graph->length);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> TensorFlowEngine::Load(const LoadOptions& options) {
  const TensorFlowApi& api = runtime_->api();
  RETURN_IF_ERROR(CheckFormat(options.directory));
  RETURN_IF_ERROR(LoadOpLibraries(api, options.op_libraries));
  SessionHandle session(&api);
  ModelParts parts;
  SessionOverrides overrides = ReadSessionOverrides(options.directory);
  parts.warnings = std::move(overrides.warnings);
  LoadOptions overridden = options;
  overridden.session_config += overrides.config;
  ASSIGN_OR_RETURN(const std::string meta_graph_def, OpenSession(api, overridden, &session));
  ASSIGN_OR_RETURN(parts.signatures, ParseSignatureDefs(meta_graph_def, kMetaGraphSignatureField));
  ASSIGN_OR_RETURN(GraphFindings graph, ExamineGraph(meta_graph_def, parts.signatures));
  parts.stateful_reason = std::move(graph.stateful_reason);
  for (size_t i = 0; i < graph.may_join_rows.size(); ++i) {
    if (graph.may_join_rows[i].empty()) continue;
    parts.alone[parts.signatures[i].name] =
        base::Cat("its operation ", graph.may_join_rows[i], " may join rows");
  }
  parts.signature_def_map = CopySignatureDefMap(meta_graph_def);
  for (std::string& line : DescribeUnservable(parts.signature_def_map)) {
    parts.warnings.push_back(std::move(line));
  }
  parts.devices = ListDevices(api, session.session);
  parts.runs_in_caller = options.runs_in_caller;
  parts.open = [&api, overridden](const std::string& more_config, SessionHandle* second) {
    LoadOptions again = overridden;
    again.session_config += more_config;
    return OpenSession(api, again, second).status();
  };
  return std::make_unique<TensorFlowModel>(std::move(session), std::move(parts));
}

}  // namespace tensord::engine
