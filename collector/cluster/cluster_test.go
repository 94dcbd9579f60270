package cluster_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/test/transport"
)

// TestConfig has what other clients of the cluster get: no limit of requests by time, of which client-go has five a
// second by default, and none of the given configuration is changed.
func TestConfig(t *testing.T) {
	given := &rest.Config{Host: "https://127.0.0.1:1"}
	reached, err := cluster.Connect(given, "test")
	if err != nil {
		t.Fatal(err)
	}
	if got := reached.Config(); got.QPS >= 0 || got.UserAgent != "test" || given.QPS != 0 || given.UserAgent != "" {
		t.Errorf("got QPS %v and agent %q; the given one has %v and %q", got.QPS, got.UserAgent, given.QPS, given.UserAgent)
	}
}

// TestRequestEndsWithItsContext has a credential plugin that hangs.
func TestRequestEndsWithItsContext(t *testing.T) {
	directory := t.TempDir()
	started, end := filepath.Join(directory, "started"), filepath.Join(directory, "end")
	if err := errors.Join(syscall.Mkfifo(started, 0o600), syscall.Mkfifo(end, 0o600)); err != nil {
		t.Fatal(err)
	}
	reached, err := cluster.Connect(&rest.Config{Host: "https://127.0.0.1:1", ExecProvider: &api.ExecConfig{
		APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: api.NeverExecInteractiveMode,
		Command: "sh", Args: []string{"-c", "echo > " + started + "; cat " + end},
	}}, "test")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	answered := make(chan error, 1)
	go func() {
		_, err := reached.Kubernetes.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		answered <- err
	}()
	if _, err := os.ReadFile(started); err != nil { // until the plugin has written
		t.Fatal(err)
	}
	cancel()
	if err := <-answered; !errors.Is(err, context.Canceled) {
		t.Errorf("List returned %v, want %v", err, context.Canceled)
	}
	plugin, err := os.OpenFile(end, os.O_WRONLY, 0) // when the plugin reads
	if err != nil {
		t.Fatal(err)
	}
	if err := plugin.Close(); err != nil {
		t.Error(err)
	}
}

// TestNotice has a server that does not answer.
func TestNotice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := transport.Func(func(request *http.Request) (*http.Response, error) {
			<-request.Context().Done()
			return nil, request.Context().Err()
		})
		reached, err := cluster.Connect(&rest.Config{Host: "https://api.example.com:6443", Transport: silent}, "test")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var notices []string
		ctx = cluster.WithNotice(ctx, func(text string) { notices = append(notices, text) })
		if _, err := reached.Kubernetes.CoreV1().Nodes().List(ctx, metav1.ListOptions{}); err == nil {
			t.Error("the request has an answer")
		}
		want := "waiting for the API server api.example.com:6443, which has not answered GET /api/v1/nodes"
		if len(notices) != 1 || notices[0] != want {
			t.Errorf("got %q, want %q", notices, want)
		}
	})
}
