# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""Parameter servers: the same script is chief, worker and server, by TF_CONFIG.

tensord train --standalone --mode ps --nproc-per-node 3 -- python parameter_server.py
"""

import argparse
import json

import tensorflow as tf


def serve(resolver):
    server = tf.distribute.Server(
        resolver.cluster_spec(),
        job_name=resolver.task_type,
        task_index=resolver.task_id,
        protocol="grpc",
        start=True,
    )
    server.join()


def coordinate(resolver, steps):
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        weight = tf.Variable(0.0)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = tf.square(weight - 3.0)
        weight.assign_sub(0.1 * tape.gradient(loss, weight))
        return loss

    losses = [coordinator.schedule(step) for _ in range(steps)]
    coordinator.join()
    return [float(losses[0].fetch()), float(weight.numpy())]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--result", help="File for what came out")
    arguments = parser.parse_args()
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type in ("worker", "ps"):
        serve(resolver)
        return
    loss, weight = coordinate(resolver, arguments.steps)
    print(f"first loss {loss:.3f}, weight {weight:.3f}", flush=True)
    if arguments.result:
        with open(arguments.result, "w") as file:
            json.dump({"loss": loss, "weight": weight}, file)


if __name__ == "__main__":
    main()
