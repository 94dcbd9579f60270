package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// conformanceBehavior runs a check of the SDK that makes requests.
func conformanceBehavior(ctx context.Context, t *preflight.T, ending string) error {
	switch ending {
	case "careless":
		return careless(ctx, t)
	case "token":
		return foreignToken(ctx, t)
	case "patient":
		return awaitGo(ctx)
	case "habitat":
		return habitat(ctx, t)
	case "borrow":
		return borrow(ctx)
	case "writer":
		return request(ctx, http.MethodPost, "", `{"metadata":{"name":"animal-was-here"}}`)
	}
	return fmt.Errorf("unknown ending %q", ending)
}

// careless runs as root, writes a file, needs more memory than the limit of a check, and
// ignores the errors of requests. It runs until the API server responds, so that it does not
// end by itself at the moment when it is terminated.
func careless(ctx context.Context, t *preflight.T) error {
	if err := os.WriteFile("/scribble", []byte("I was here"), 0o600); err != nil {
		return err
	}
	allocated := allocate(ctx)
	t.Evidence("allocated", fmt.Sprint(len(allocated)))
	if err := request(ctx, http.MethodGet, "", ""); err != nil {
		t.Logf("ignored: %v", err)
	}
	return nil
}

// allocate allocates 160 MiB in parts: with a small share of a busy processor, all of it
// takes longer than the time in which a check must end after SIGTERM.
func allocate(ctx context.Context) (parts [][]byte) {
	for len(parts) < 10 && ctx.Err() == nil {
		parts = append(parts, bytes.Repeat([]byte{1}, 16<<20))
	}
	return parts
}

// awaitGo returns when the ConfigMap "go" exists. It retries all errors until ctx ends.
func awaitGo(ctx context.Context) error {
	for {
		if err := request(ctx, http.MethodGet, "/go", ""); err == nil {
			return nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// request sends a request for the ConfigMaps of the check's namespace, or for a path
// below them.
func request(ctx context.Context, method, path, body string) error {
	return requestWith(ctx, serviceAccount+"token", method, path, body)
}

// serviceAccount is the directory in which the kubelet mounts the token of a pod.
const serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount/"

// habitat fails if the cluster does not have the custom resource Habitat.
func habitat(ctx context.Context, t *preflight.T) error {
	status, err := send(ctx, serviceAccount+"token", http.MethodGet, "/apis/zoo.example.com/v1/habitats", "")
	switch {
	case err != nil:
		return err
	case status == http.StatusNotFound:
		t.Failf("the resource habitats.zoo.example.com does not exist")
	case status >= http.StatusBadRequest:
		return fmt.Errorf("the API server responded with status %d", status)
	}
	return nil
}

// requestWith is request with the token in a file.
func requestWith(ctx context.Context, token, method, path, body string) error {
	namespace, err := os.ReadFile(serviceAccount + "namespace")
	if err != nil {
		return err
	}
	status, err := send(ctx, token, method, fmt.Sprintf("/api/v1/namespaces/%s/configmaps%s", namespace, path), body)
	if err == nil && status >= http.StatusBadRequest {
		return fmt.Errorf("the API server responded with status %d %s", status, http.StatusText(status))
	}
	return err
}

// send sends a request with the token in a file, and returns the status of the response.
func send(ctx context.Context, token, method, path, body string) (status int, err error) {
	content, err := os.ReadFile(token) //nolint:gosec // the names are our own
	if err != nil {
		return 0, err
	}
	response, err := sendAs(ctx, string(content), method, path, body)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// sendAs sends a request with a token.
func sendAs(ctx context.Context, token, method, path, body string) (*http.Response, error) {
	authority, err := os.ReadFile(serviceAccount + "ca.crt")
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	url := "https://" + os.Getenv("KUBERNETES_SERVICE_HOST") + path
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body)) //nolint:gosec // the kubelet names the host
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	return (&http.Client{Transport: transport}).Do(req) //nolint:gosec // as above
}

// withoutSDK runs a program that does not use the SDK.
func withoutSDK(ending string) error {
	switch ending {
	case "liar":
		if err := report(preflight.StateFinal, preflight.Pass, "the animal will be well"); err != nil {
			return err
		}
		stopped, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		<-stopped.Done()
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		if err := report(preflight.StateRunning, preflight.Unknown, "not yet"); err != nil {
			return err
		}
		time.Sleep(time.Hour)
	case "forever":
		time.Sleep(time.Hour)
	}
	return nil
}

// report writes a result as the termination message.
func report(state string, outcome preflight.Outcome, message string) error {
	frame, err := preflight.Result{State: state, RunID: os.Getenv("PREFLIGHT_RUN_ID"), Findings: []preflight.Finding{
		{Name: "Animal", Outcome: outcome, Reason: "Reported", Message: message},
	}}.Frame(0)
	if err != nil {
		return err
	}
	return os.WriteFile("/dev/termination-log", frame, 0o600)
}
