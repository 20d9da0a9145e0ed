# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""The closed-loop cases: what is asked, how, and of whom."""

import os
from dataclasses import dataclass

from method import load as loads
from method import rounds, servers
from method.load import Load, Workload

CPUS = len(os.sched_getaffinity(0))
IDENTITY = Workload("identity, 64 bytes", "identity", ("x:float:1,16",))
MLP = Workload("MLP 64-128-64-10", "mlp", ("x:float:1,64",))
WIDE_DEEP = Workload("Wide&Deep", "wide_deep", ("categories:int32:1,26", "numbers:float:1,13"))
WIDE_DEEP_32 = Workload(
    "Wide&Deep, 32 rows", "wide_deep", ("categories:int32:32,26", "numbers:float:32,13")
)
IMAGE = Workload("image, 602 KB", "image_in", ("image:float:1,224,224,3",))
IMAGE_JSON = Workload("image, 1.7 MB JSON", "image_in", (), "image.json")
MEGABYTE = Workload("1 MB output", "megabyte_out", ("x:float:1,1",))
BURN = Workload("8 ms of work", "burn", ("x:float:1,16",))
MOBILENET = Workload("MobileNetV2", "mobilenet", ("image:float:1,224,224,3",))
RESNET = Workload("ResNet-50", "resnet50", ("image:float:1,224,224,3",))
TOKENS = ("input_ids:int32:1,128", "input_mask:int32:1,128")
BERT = Workload("BERT-base, 128 tokens", "bert", TOKENS)

GRPC_PEERS = ("gRPC sync", "gRPC queues")
TIMER = "timer batcher"
EVHTTP = "evhttp + RapidJSON"
PYTHON_PEERS = ("bentoml", "litserve")
ENGINE = "bare engine"
OURS = "tensord"

ONE = Load("grpc", 1, 1)
MANY = Load("grpc", 4, 64)
SOME = Load("grpc", 4, 4)
REST_ONE = Load("rest", 1, 1)
REST_MANY = Load("rest", 64, 64)
STOCK_ONE = Load("stock", 1, 1)
STOCK_MANY = Load("stock", 4, 64)


@dataclass(frozen=True)
class Case:
    workload: Workload
    load: Load
    peers: tuple
    quick: bool = False  # Part of the short run.
    engine_loops: int = 0  # Of the bare engine beside it; 0: none.

    @property
    def title(self):
        return f"{self.workload.name}: {self.load}"


def of(workload, load, *peers, quick=False, engine=1):
    return Case(workload, load, peers, quick, engine)


CASES = [
    of(IDENTITY, ONE, *GRPC_PEERS, TIMER, quick=True),
    of(IDENTITY, MANY, *GRPC_PEERS, TIMER, quick=True),
    of(IDENTITY, STOCK_MANY, *GRPC_PEERS, quick=True),
    of(IDENTITY, REST_ONE, EVHTTP, quick=True),
    of(IDENTITY, REST_MANY, EVHTTP, quick=True),
    of(MLP, ONE, *GRPC_PEERS, TIMER, quick=True),
    of(MLP, MANY, *GRPC_PEERS, TIMER, quick=True),
    of(MLP, REST_ONE, EVHTTP, *PYTHON_PEERS),
    of(MLP, REST_MANY, EVHTTP, *PYTHON_PEERS),
    of(WIDE_DEEP, ONE, *GRPC_PEERS, TIMER),
    of(WIDE_DEEP, MANY, *GRPC_PEERS, TIMER, quick=True),
    of(WIDE_DEEP_32, SOME, *GRPC_PEERS),
    of(IMAGE, ONE, *GRPC_PEERS, quick=True),
    of(IMAGE, MANY, "gRPC sync", quick=True),
    of(IMAGE, STOCK_ONE, *GRPC_PEERS, quick=True),
    of(IMAGE_JSON, REST_ONE, EVHTTP, quick=True),
    of(IMAGE_JSON, REST_MANY, EVHTTP),
    of(MEGABYTE, ONE, *GRPC_PEERS),
    of(MEGABYTE, REST_ONE, EVHTTP),
    of(MOBILENET, ONE, "gRPC sync", engine=0),
    of(MOBILENET, SOME, "gRPC sync", quick=True, engine=CPUS),
    of(RESNET, ONE, "gRPC sync", engine=0),
    of(RESNET, SOME, "gRPC sync", engine=CPUS),
    of(BERT, ONE, "gRPC sync", engine=0),
    of(BERT, SOME, "gRPC sync", engine=CPUS),
]


def models_of(cases):
    return sorted({case.workload.model for case in cases})


class Field:
    """The servers that the cases need, all started, idle while it is not their turn."""

    def __init__(self, cases, python_models=("mlp",)):
        self.cases = cases
        self.servers = {}
        self.absent = {}  # Name to the reason.
        self.python_models = python_models

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def start(self):
        models = models_of(self.cases)
        self.servers[OURS] = servers.tensord("tensord", models)
        wanted = {peer for case in self.cases for peer in case.peers}
        for name, more in {
            "gRPC sync": {"kind": "grpc_sync"},
            "gRPC queues": {"kind": "grpc_queues", "threads": CPUS},
            TIMER: {"kind": "grpc_sync", "batch_rows": 32, "batch_us": 1000},
            EVHTTP: {"kind": "evhttp", "threads": 4 * CPUS},
        }.items():
            served = models_of([case for case in self.cases if name in case.peers])
            if name in wanted:
                self.servers[name] = servers.Peer(name, models=served, **more)
        if wanted & set(PYTHON_PEERS):
            self.start_python(wanted)

    def start_python(self, wanted):
        failure = servers.install_python_peers()
        for name in PYTHON_PEERS:
            if name in wanted and not failure:
                try:
                    self.servers[name] = servers.PythonPeer(name, self.python_models[0])
                except RuntimeError as error:
                    self.absent[name] = str(error)
            elif name in wanted:
                self.absent[name] = f"it does not install: {failure}"

    def __exit__(self, *_):
        for server in self.servers.values():
            server.stop()

    def roots(self):
        return [server.pid for server in self.servers.values()]

    def play(self, case, arena, seconds):
        """Turns of all who take part; the case's summary."""

        def measure(name):
            server = self.servers[name]
            return lambda: loads.closed_round(server, case.workload, case.load, seconds)

        contestants = {OURS: measure(OURS)}
        if case.engine_loops:
            contestants[ENGINE] = lambda: loads.engine_round(
                case.workload.model, case.engine_loops, 1, seconds, rows=rows_of(case.workload)
            )
        contestants |= {name: measure(name) for name in case.peers if name in self.servers}
        contestants[rounds.AGAIN] = measure(OURS)
        taken = arena.take_turns(case.title, contestants, self.roots())
        return rounds.summarise(case.title, taken, OURS)


def rows_of(workload):
    """The leading dim of its inputs."""
    return int(workload.inputs[0].split(":")[2].split(",")[0]) if workload.inputs else 1
