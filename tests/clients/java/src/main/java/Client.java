// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

import com.google.protobuf.Message;
import grpc.health.v1.HealthOuterClass.HealthCheckRequest;
import grpc.health.v1.HealthOuterClass.HealthCheckResponse;
import io.grpc.CallOptions;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.ProtoUtils;
import io.grpc.stub.ClientCalls;
import java.util.concurrent.TimeUnit;
import tensorflow.Tensor.DataType;
import tensorflow.Tensor.TensorProto;
import tensorflow.Tensor.TensorShapeProto;
import tensorflow.serving.Model.ModelSpec;
import tensorflow.serving.Predict.PredictRequest;
import tensorflow.serving.Predict.PredictResponse;

/**
 * Asks a server what the end-to-end tests want to see a Java program ask: a Predict, a failing one, a
 * deadline, health. It prints one line a question and fails with the first that is answered wrongly.
 * The clients in other languages do and print the same.
 */
final class Client {
  private static final long GENEROUS_MS = 60_000;

  private static final MethodDescriptor<PredictRequest, PredictResponse> PREDICT =
      unary(
          "tensorflow.serving.PredictionService/Predict",
          PredictRequest.getDefaultInstance(),
          PredictResponse.getDefaultInstance());
  private static final MethodDescriptor<HealthCheckRequest, HealthCheckResponse> CHECK =
      unary(
          "grpc.health.v1.Health/Check",
          HealthCheckRequest.getDefaultInstance(),
          HealthCheckResponse.getDefaultInstance());

  private final ManagedChannel channel;

  private Client(ManagedChannel channel) {
    this.channel = channel;
  }

  private static <Q extends Message, A extends Message> MethodDescriptor<Q, A> unary(
      String name, Q question, A answer) {
    return MethodDescriptor.<Q, A>newBuilder()
        .setType(MethodDescriptor.MethodType.UNARY)
        .setFullMethodName(name)
        .setRequestMarshaller(ProtoUtils.marshaller(question))
        .setResponseMarshaller(ProtoUtils.marshaller(answer))
        .build();
  }

  private <Q, A> A call(MethodDescriptor<Q, A> method, Q question, long milliseconds) {
    CallOptions options =
        CallOptions.DEFAULT.withDeadlineAfter(milliseconds, TimeUnit.MILLISECONDS);
    return ClientCalls.blockingUnaryCall(channel, method, options, question);
  }

  private PredictResponse predict(
      String model, String input, TensorProto.Builder tensor, long milliseconds) {
    TensorShapeProto.Dim one = TensorShapeProto.Dim.newBuilder().setSize(1).build();
    tensor.setTensorShape(TensorShapeProto.newBuilder().addDim(one));
    PredictRequest request =
        PredictRequest.newBuilder()
            .setModelSpec(ModelSpec.newBuilder().setName(model))
            .putInputs(input, tensor.build())
            .build();
    return call(PREDICT, request, milliseconds);
  }

  private static TensorProto.Builder number(float value) {
    return TensorProto.newBuilder().setDtype(DataType.DT_FLOAT).addFloatVal(value);
  }

  private void checkHealth() {
    HealthCheckResponse answer = call(CHECK, HealthCheckRequest.getDefaultInstance(), GENEROUS_MS);
    expect(answer.getStatus() == HealthCheckResponse.ServingStatus.SERVING, answer);
  }

  private void checkPredict() {
    PredictResponse answer = predict("half", "x", number(2), GENEROUS_MS);
    expect(answer.getOutputsOrThrow("y").getFloatVal(0) == 3, answer);
  }

  private void checkFailure() {
    Status status = errorOf(() -> predict("nobody", "x", number(1), GENEROUS_MS));
    boolean named = String.valueOf(status.getDescription()).contains("nobody");
    expect(status.getCode() == Status.Code.NOT_FOUND && named, status);
  }

  private void checkDeadline() {
    TensorProto.Builder sleep =
        TensorProto.newBuilder().setDtype(DataType.DT_INT32).addIntVal(1000);
    Status status = errorOf(() -> predict("sleep_ms", "ms", sleep, 200));
    expect(status.getCode() == Status.Code.DEADLINE_EXCEEDED, status);
  }

  private static Status errorOf(Runnable call) {
    try {
      call.run();
    } catch (StatusRuntimeException error) {
      return error.getStatus();
    }
    throw new IllegalStateException("the call succeeded, and should not have");
  }

  private static void expect(boolean condition, Object got) {
    if (!condition) {
      throw new IllegalStateException("unexpected: " + got);
    }
  }

  private static void report(String name, Runnable check) {
    try {
      check.run();
    } catch (RuntimeException error) {
      throw new IllegalStateException(name + ": " + error.getMessage(), error);
    }
    System.out.println("ok " + name);
  }

  public static void main(String[] arguments) throws InterruptedException {
    ManagedChannel channel =
        ManagedChannelBuilder.forTarget("dns:///" + arguments[0]).usePlaintext().build();
    Client client = new Client(channel);
    report("health", client::checkHealth);
    report("predict", client::checkPredict);
    report("failure", client::checkFailure);
    report("deadline", client::checkDeadline);
    report("predict again", client::checkPredict);
    channel.shutdownNow().awaitTermination(5, TimeUnit.SECONDS);
  }
}
