# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""Our .proto files say the same as the official descriptors: every message, field and enum value.

Run by pytest with the interpreter that has tensorflow and tensorflow-serving-api installed.
"""

import importlib
import pathlib
import re
import shutil
import subprocess

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROTO = ROOT / "proto"

OFFICIAL_MODULES = [
    "tensorflow_serving.apis.classification_pb2",
    "tensorflow_serving.apis.get_model_metadata_pb2",
    "tensorflow_serving.apis.get_model_status_pb2",
    "tensorflow_serving.apis.inference_pb2",
    "tensorflow_serving.apis.input_pb2",
    "tensorflow_serving.apis.logging_pb2",
    "tensorflow_serving.apis.model_pb2",
    "tensorflow_serving.apis.model_management_pb2",
    "tensorflow_serving.apis.model_service_pb2",
    "tensorflow_serving.apis.predict_pb2",
    "tensorflow_serving.apis.prediction_log_pb2",
    "tensorflow_serving.apis.prediction_service_pb2",
    "tensorflow_serving.apis.regression_pb2",
    "tensorflow_serving.apis.status_pb2",
    "tensorflow_serving.config.file_system_storage_path_source_pb2",
    "tensorflow_serving.config.log_collector_config_pb2",
    "tensorflow_serving.config.logging_config_pb2",
    "tensorflow_serving.config.model_server_config_pb2",
    "tensorflow_serving.config.platform_config_pb2",
    "tensorflow.core.example.example_pb2",
    "tensorflow.core.example.feature_pb2",
    "tensorflow.core.framework.resource_handle_pb2",
    "tensorflow.core.framework.tensor_pb2",
    "tensorflow.core.framework.tensor_shape_pb2",
    "tensorflow.core.framework.types_pb2",
    "tensorflow.core.protobuf.config_pb2",
    "tensorflow.core.protobuf.error_codes_pb2",
    "tensorflow.core.protobuf.meta_graph_pb2",
    "tensorflow.core.protobuf.named_tensor_pb2",
    "tensorflow.core.protobuf.rewriter_config_pb2",
    "tensorflow.core.protobuf.struct_pb2",
    "tritonclient.grpc.service_pb2",
]

# Messages that no Python package ships. Their fields are pinned in FROM_SOURCE instead, as read in
# the original's sources.
FROM_SOURCE = {
    "tensorflow.serving.PrometheusConfig": "enable=1 path=2",
    "tensorflow.serving.MonitoringConfig": "prometheus_config=1",
    "tensorflow.serving.SSLConfig": "server_key=1 server_cert=2 custom_ca=3 client_verify=4",
    "tensorflow.serving.BatchingParameters": """max_batch_size=1 batch_timeout_micros=2
        max_enqueued_batches=3 num_batch_threads=4 thread_pool_name=5 allowed_batch_sizes=6
        pad_variable_length_inputs=7 enable_large_batch_splitting=8 max_execution_batch_size=9""",
    "tensorflow.serving.ModelWarmupOptions": """num_request_iterations=1
        num_model_warmup_threads=2 model_name=3 model_version=4 enable_all_batch_sizes_warmup=5""",
    "tensorflow.serving.SessionBundleConfig": """session_target=1 session_config=2
        batching_parameters=3 session_run_load_threadpool_index=4
        experimental_transient_ram_bytes_during_load=5 saved_model_tags=6
        in_graph_batching_parameters=7 experimental_fixed_input_tensors=778
        enable_model_warmup=779 model_warmup_options=780 enable_session_metadata=781
        remove_unused_fields_from_bundle_metagraph=782 prefer_tflite_model=783
        resource_estimation_uses_validation_result=784 num_tflite_interpreters=785
        num_tflite_interpreters_per_pool=786 num_tflite_pools=787
        wrap_session_with_no_threading_params=788 enable_per_model_batching_params=789
        enable_saved_model_config=790 mixed_precision=791""",
    "tensorflow.serving.SavedModelBundleSourceAdapterConfig": "legacy_config=1000",
    "grpc.health.v1.HealthCheckRequest": "service=1",
    "grpc.health.v1.HealthCheckResponse": "status=1",
    "grpc.health.v1.HealthListRequest": "",
    "grpc.health.v1.HealthListResponse": "statuses=1",
    "grpc.health.v1.HealthListResponse.StatusesEntry": "key=1 value=2",
}
for version in ("v1", "v1alpha"):
    package = f"grpc.reflection.{version}"
    FROM_SOURCE |= {
        f"{package}.ServerReflectionRequest": """host=1 file_by_filename=3
            file_containing_symbol=4 file_containing_extension=5 all_extension_numbers_of_type=6
            list_services=7""",
        f"{package}.ExtensionRequest": "containing_type=1 extension_number=2",
        f"{package}.ServerReflectionResponse": """valid_host=1 original_request=2
            file_descriptor_response=4 all_extension_numbers_response=5 list_services_response=6
            error_response=7""",
        f"{package}.FileDescriptorResponse": "file_descriptor_proto=1",
        f"{package}.ExtensionNumberResponse": "base_type_name=1 extension_number=2",
        f"{package}.ListServiceResponse": "service=1",
        f"{package}.ServiceResponse": "name=1",
        f"{package}.ErrorResponse": "error_code=1 error_message=2",
    }
FROM_SOURCE_ENUMS = {
    "grpc.health.v1.HealthCheckResponse.ServingStatus": (
        "UNKNOWN=0 SERVING=1 NOT_SERVING=2 SERVICE_UNKNOWN=3"
    ),
}

SERVICES_FROM_SOURCE = {
    "grpc.health.v1.Health",
    "grpc.reflection.v1.ServerReflection",
    "grpc.reflection.v1alpha.ServerReflection",
}

# Services of which we serve a part, with the reason; all others must be complete.
PARTIAL_SERVICES = {
    "inference.GRPCInferenceService": "streams and shared memory are Triton's own",
}

# Messages of which we carry a part, with the reason; all others must be complete.
PARTIAL = {
    "tensorflow.serving.SessionRunLog": "no open server offers SessionRun",
    "inference.ModelConfig": "how Triton is told to run a model, of which nothing applies here",
    "inference.ModelInput": "likewise",
    "inference.ModelOutput": "likewise",
}


def run_protoc(out):
    """Compiles our files with whichever protoc the build uses."""
    protoc = shutil.which("protoc")
    if protoc is None:
        pytest.fail("protoc is not installed; the build needs it, too (protobuf-compiler)")
    files = sorted(str(path.relative_to(PROTO)) for path in PROTO.rglob("*.proto"))
    assert len(files) > 25
    subprocess.run(
        [protoc, f"-I{PROTO}", "--include_imports", f"--descriptor_set_out={out}", *files],
        check=True,
        cwd=PROTO,
    )
    return files


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    """All our messages, enums and services by full name, in a pool of their own."""
    out = tmp_path_factory.mktemp("protos") / "ours.pb"
    files = run_protoc(out)
    descriptors = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes())
    pool = descriptor_pool.DescriptorPool()
    for file in descriptors.file:
        pool.Add(file)
    return collect(pool.FindFileByName(name) for name in files)


@pytest.fixture(scope="module")
def official():
    found = {}
    pending = [importlib.import_module(name).DESCRIPTOR for name in OFFICIAL_MODULES]
    seen = set()
    while pending:
        file = pending.pop()
        if file.name in seen:
            continue
        seen.add(file.name)
        pending.extend(file.dependencies)
        found.update(collect([file]))
    return found


def collect(files):
    found = {}

    def add(message):
        found[message.full_name] = message
        for nested in message.nested_types:
            add(nested)
        for enum in message.enum_types:
            found[enum.full_name] = enum

    for file in files:
        for message in file.message_types_by_name.values():
            add(message)
        for enum in file.enum_types_by_name.values():
            found[enum.full_name] = enum
        for service in file.services_by_name.values():
            found[service.full_name] = service
    return found


def kind(descriptor):
    for attribute in ("fields", "values", "methods"):
        if hasattr(descriptor, attribute):
            return attribute
    raise AssertionError(descriptor)


def repeated(field):
    value = getattr(field, "is_repeated", None)
    return field.label == field.LABEL_REPEATED if value is None else value


def describe(field):
    """What is on the wire, in text files and in JSON."""
    target = field.message_type or field.enum_type
    oneof = field.containing_oneof
    return {
        "name": field.name,
        "number": field.number,
        "type": field.type,
        "target": target.full_name if target else None,
        "repeated": repeated(field),
        "presence": field.has_presence,
        "oneof": oneof.name if oneof else None,
        "json_name": field.json_name,
    }


def is_ours_alone(name):
    return name.startswith("tensord.")


def test_every_message_is_official_or_pinned(ours, official):
    unknown = [
        name
        for name in ours
        if not is_ours_alone(name)
        and name not in official
        and name not in FROM_SOURCE
        and name not in FROM_SOURCE_ENUMS
        and name not in SERVICES_FROM_SOURCE
    ]
    assert unknown == []
    assert len([name for name in ours if name in official]) > 80


def test_every_field_is_as_official(ours, official):
    for name, message in ours.items():
        if kind(message) != "fields" or name not in official:
            continue
        theirs = {field.number: describe(field) for field in official[name].fields}
        for field in message.fields:
            assert describe(field) == theirs.get(field.number), f"{name}.{field.name}"
        missing = sorted(set(theirs) - {field.number for field in message.fields})
        if name in PARTIAL:
            assert missing, f"{name} is complete: take it off PARTIAL"
        else:
            assert missing == [], f"{name} lacks {[theirs[n]['name'] for n in missing]}"


def test_every_enum_is_as_official(ours, official):
    for name, enum in ours.items():
        if kind(enum) != "values" or name not in official:
            continue
        mine = {(value.name, value.number) for value in enum.values}
        theirs = {(value.name, value.number) for value in official[name].values}
        assert mine == theirs, name


def test_every_service_is_as_official(ours, official):
    services = {name: d for name, d in ours.items() if kind(d) == "methods" and name in official}
    assert set(services) == {
        "inference.GRPCInferenceService",
        "tensorflow.serving.ModelService",
        "tensorflow.serving.PredictionService",
    }
    for name, service in services.items():
        mine, theirs = (
            {(m.name, m.input_type.full_name, m.output_type.full_name) for m in s.methods}
            for s in (service, official[name])
        )
        if name in PARTIAL_SERVICES:
            assert mine < theirs, f"{name} is complete: take it off PARTIAL_SERVICES"
        else:
            assert mine == theirs, name


@pytest.mark.parametrize("name", sorted(FROM_SOURCE))
def test_messages_without_a_package_are_as_their_source_says(ours, name):
    mine = {f"{field.name}={field.number}" for field in ours[name].fields}
    assert mine == set(FROM_SOURCE[name].split())


@pytest.mark.parametrize("name", sorted(FROM_SOURCE_ENUMS))
def test_enums_without_a_package_are_as_their_source_says(ours, name):
    mine = {f"{value.name}={value.number}" for value in ours[name].values}
    assert mine == set(FROM_SOURCE_ENUMS[name].split())


def test_every_field_has_a_comment():
    """A comment behind the field, or a line of its own before it."""
    field = re.compile(r"^\s+\w[\w.<>, ]* \w+ = \d+")
    bare = []
    for path in sorted(PROTO.rglob("*.proto")):
        lines = path.read_text().splitlines()
        for i, line in enumerate(lines):
            if field.match(line) and "//" not in " ".join(lines[max(i - 1, 0) : i + 3]):
                bare.append(f"{path.name}:{i + 1}: {line.strip()}")
    assert bare == []
