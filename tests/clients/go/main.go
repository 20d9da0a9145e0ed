// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

// Command client asks a server what the end-to-end tests want to see a Go program ask: a Predict, a
// failing one, a deadline, health. It prints one line a question and fails with the first that is
// answered wrongly. The C++ client beside it does and prints the same.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	pb "tensord.example/client/pb"
)

const (
	predictMethod = "/tensorflow.serving.PredictionService/Predict"
	generous      = 60 * time.Second
)

// predict asks `model` for one input of one dim.
func predict(conn *grpc.ClientConn, model, input string, tensor *pb.TensorProto,
	timeout time.Duration) (*pb.PredictResponse, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	request := &pb.PredictRequest{
		ModelSpec: &pb.ModelSpec{Name: model},
		Inputs:    map[string]*pb.TensorProto{input: tensor},
	}
	response := &pb.PredictResponse{}
	return response, conn.Invoke(ctx, predictMethod, request, response)
}

func vector(size int64) *pb.TensorShapeProto {
	return &pb.TensorShapeProto{Dim: []*pb.TensorShapeProto_Dim{{Size: size}}}
}

func floats(values ...float32) *pb.TensorProto {
	return &pb.TensorProto{
		Dtype:       pb.DataType_DT_FLOAT,
		TensorShape: vector(int64(len(values))),
		FloatVal:    values,
	}
}

func checkHealth(conn *grpc.ClientConn) error {
	ctx, cancel := context.WithTimeout(context.Background(), generous)
	defer cancel()
	answer, err := grpc_health_v1.NewHealthClient(conn).Check(ctx,
		&grpc_health_v1.HealthCheckRequest{})
	if err != nil {
		return err
	}
	if answer.Status != grpc_health_v1.HealthCheckResponse_SERVING {
		return fmt.Errorf("status is %v", answer.Status)
	}
	return nil
}

func checkPredict(conn *grpc.ClientConn) error {
	response, err := predict(conn, "half", "x", floats(2, 4), generous)
	if err != nil {
		return err
	}
	y := response.Outputs["y"].GetFloatVal()
	if len(y) != 2 || y[0] != 3 || y[1] != 4 {
		return fmt.Errorf("y is %v", y)
	}
	return nil
}

func checkFailure(conn *grpc.ClientConn) error {
	_, err := predict(conn, "nobody", "x", floats(1), generous)
	if status.Code(err) != codes.NotFound ||
		!strings.Contains(status.Convert(err).Message(), "nobody") {
		return fmt.Errorf("want NotFound that names the model, got %v", err)
	}
	return nil
}

func checkDeadline(conn *grpc.ClientConn) error {
	sleep := &pb.TensorProto{
		Dtype:       pb.DataType_DT_INT32,
		TensorShape: vector(1),
		IntVal:      []int32{1000},
	}
	_, err := predict(conn, "sleep_ms", "ms", sleep, 200*time.Millisecond)
	if status.Code(err) != codes.DeadlineExceeded {
		return fmt.Errorf("want DeadlineExceeded, got %v", err)
	}
	return nil
}

func run(address string) error {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	checks := []struct {
		name  string
		check func(*grpc.ClientConn) error
	}{
		{"health", checkHealth},
		{"predict", checkPredict},
		{"failure", checkFailure},
		{"deadline", checkDeadline},
		{"predict again", checkPredict},
	}
	for _, c := range checks {
		if err := c.check(conn); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		fmt.Println("ok", c.name)
	}
	return nil
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: client HOST:PORT")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
