package main

import (
	"context"
	"fmt"

	openapi_v3 "github.com/google/gnostic-models/openapiv3"
	"google.golang.org/protobuf/proto"
)

// checkOpenAPIV3 compares both forms of every document: the protobuf one must be what gnostic makes of the JSON one, as
// kube-apiserver makes it.
func checkOpenAPIV3(_ context.Context, s *suite) error {
	paths, err := s.client.Discovery().OpenAPIV3().Paths()
	if err != nil {
		return err
	}
	if len(paths) < 40 {
		return fmt.Errorf("only %d documents", len(paths))
	}
	for name, group := range paths {
		text, err := group.Schema("application/json")
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		binary, err := group.Schema("application/com.github.proto-openapi.spec.v3.v1.0+protobuf")
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		want, err := openapi_v3.ParseDocument(text)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		got := &openapi_v3.Document{}
		if err := proto.Unmarshal(binary, got); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if !proto.Equal(got, want) {
			return fmt.Errorf("%s: protobuf (%d bytes) is not what the JSON says", name, len(binary))
		}
	}
	return nil
}
