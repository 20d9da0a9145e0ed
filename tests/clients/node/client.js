// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

// Asks a server what the end-to-end tests want to see a Node program ask: a Predict, a failing one, a
// deadline, health. It prints one line a question and fails with the first that is answered wrongly.
// The clients in other languages do and print the same.
"use strict";

const path = require("node:path");
const grpc = require("@grpc/grpc-js");
const loader = require("@grpc/proto-loader");

const GENEROUS_MS = 60000;

function load(protos, file) {
  const options = { includeDirs: [protos], keepCase: true, longs: Number, enums: String };
  return grpc.loadPackageDefinition(loader.loadSync(path.join("tensord", file), options));
}

// call(client, method, request, ms): the answer; an error is thrown.
function call(client, method, request, milliseconds) {
  return new Promise((resolve, reject) => {
    const deadline = new Date(Date.now() + milliseconds);
    client[method](request, { deadline }, (error, answer) =>
      error ? reject(error) : resolve(answer),
    );
  });
}

function predict(clients, model, input, tensor, milliseconds) {
  const request = {
    model_spec: { name: model },
    inputs: { [input]: { ...tensor, tensor_shape: { dim: [{ size: 1 }] } } },
  };
  return call(clients.prediction, "Predict", request, milliseconds);
}

function expect(condition, got) {
  if (!condition) throw new Error(`unexpected: ${JSON.stringify(got)}`);
}

async function checkPredict(clients) {
  const tensor = { dtype: "DT_FLOAT", float_val: [2] };
  const answer = await predict(clients, "half", "x", tensor, GENEROUS_MS);
  expect(answer.outputs.y.float_val[0] === 3, answer);
}

// The error that the promise ends with.
async function errorOf(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error("the call succeeded, and should not have");
}

const CHECKS = {
  health: async (clients) => {
    const answer = await call(clients.health, "Check", {}, GENEROUS_MS);
    expect(answer.status === "SERVING", answer);
  },
  predict: checkPredict,
  failure: async (clients) => {
    const tensor = { dtype: "DT_FLOAT", float_val: [1] };
    const error = await errorOf(predict(clients, "nobody", "x", tensor, GENEROUS_MS));
    expect(error.code === grpc.status.NOT_FOUND && error.details.includes("nobody"), error);
  },
  deadline: async (clients) => {
    const tensor = { dtype: "DT_INT32", int_val: [1000] };
    const error = await errorOf(predict(clients, "sleep_ms", "ms", tensor, 200));
    expect(error.code === grpc.status.DEADLINE_EXCEEDED, error);
  },
  "predict again": checkPredict,
};

async function main(address, protos) {
  const credentials = grpc.credentials.createInsecure();
  const serving = load(protos, "prediction_service.proto").tensorflow.serving;
  const health = load(protos, "health.proto").grpc.health.v1;
  const clients = {
    prediction: new serving.PredictionService(address, credentials),
    health: new health.Health(address, credentials),
  };
  for (const [name, check] of Object.entries(CHECKS)) {
    await check(clients).catch((error) => {
      throw new Error(`${name}: ${error.message}`);
    });
    console.log(`ok ${name}`);
  }
  clients.prediction.close();
  clients.health.close();
}

if (process.argv.length !== 4) {
  console.error("usage: client.js HOST:PORT PROTO_FOLDER");
  process.exit(2);
}
main(process.argv[2], process.argv[3]).catch((error) => {
  console.error(error.message);
  process.exit(1);
});
