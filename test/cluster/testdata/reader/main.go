// Reader is the pod of the cluster's own test. What it does is its first
// argument, and to what its second:
//
//	read PATH  prints what the API answers, asked with the in-cluster configuration
//	hold PATH  does the same, and then runs until it is ended
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/rest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := do(ctx, os.Args[1], os.Args[2]); err != nil {
		fmt.Println("error:", err)
	}
}

func do(ctx context.Context, verb, object string) error {
	err := read(ctx, object)
	if verb == "hold" {
		<-ctx.Done()
	}
	return err
}

func read(ctx context.Context, path string) error {
	config, err := rest.InClusterConfig()
	if err != nil {
		return err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+path, http.NoBody)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	fmt.Println(response.Status, string(body))
	return response.Body.Close()
}
