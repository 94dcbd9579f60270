package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// habit is what a check of the SDK does that works, and must not be shipped.
func habit(ctx context.Context, t *preflight.T, ending string) error {
	switch ending {
	case "long":
		t.Failf("the animal is ill: %s", strings.Repeat("it has spots, ", 800))
	case "flood":
		for range 4 << 10 {
			fmt.Println(strings.Repeat("splash ", 146))
		}
	case "hog":
		eaten := eat(ctx)
		t.Evidence("eaten", fmt.Sprint(len(eaten)))
		// It runs until the API server responds, so that it does not end in
		// the moment when it is ended.
		if err := ask(ctx, http.MethodGet, "", ""); err != nil {
			t.Logf("never mind: %v", err)
		}
	case "scribble":
		return os.WriteFile("/scribble", []byte("I was here"), 0o600)
	case "fickle":
		t.Reason(fmt.Sprintf("At%d", time.Now().UnixNano()))
		t.Warnf("the animal looks different each time")
	case "panic":
		panic("the animal escaped")
	case "reader":
		return ask(ctx, http.MethodGet, "", "")
	case "open":
		if err := ask(ctx, http.MethodGet, "", ""); err != nil {
			t.Logf("never mind: %v", err)
		}
	case "token":
		return foreignToken(ctx, t)
	case "patient":
		return patience(ctx)
	case "habitat":
		return habitat(ctx, t)
	case "writer":
		return ask(ctx, http.MethodPost, "", `{"metadata":{"name":"animal-was-here"}}`)
	default:
		return fmt.Errorf("there is no animal called %q", ending)
	}
	return nil
}

// eat allocates 160 MiB in parts: with a small share of a busy processor all of it takes
// longer than the time in which a check has to end after SIGTERM.
func eat(ctx context.Context) (parts [][]byte) {
	for len(parts) < 10 && ctx.Err() == nil {
		parts = append(parts, bytes.Repeat([]byte{1}, 16<<20))
	}
	return parts
}

// patience returns when there is a ConfigMap "go", however long that takes and
// whatever the API server goes through meanwhile.
func patience(ctx context.Context) error {
	for {
		if err := ask(ctx, http.MethodGet, "/go", ""); err == nil {
			return nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// ask sends a request about the ConfigMaps of the check's namespace, or below
// them.
func ask(ctx context.Context, method, path, body string) error {
	return askWith(ctx, serviceAccount+"token", method, path, body)
}

// serviceAccount is where the kubelet mounts the token of a pod.
const serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount/"

// habitat fails where the cluster does not have the custom resource of the animal.
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

// askWith is ask with the token in a file.
func askWith(ctx context.Context, token, method, path, body string) error {
	namespace, err := os.ReadFile(serviceAccount + "namespace")
	if err != nil {
		return err
	}
	status, err := send(ctx, token, method, fmt.Sprintf("/api/v1/namespaces/%s/configmaps%s", namespace, path), body)
	if err == nil && status >= http.StatusBadRequest {
		return fmt.Errorf("the API server says %d %s", status, http.StatusText(status))
	}
	return err
}

// send sends a request with the token in a file, and returns the status of the response.
func send(ctx context.Context, token, method, path, body string) (status int, err error) {
	var files [2][]byte
	for i, name := range []string{token, serviceAccount + "ca.crt"} {
		files[i], err = os.ReadFile(name) //nolint:gosec // the names are our own
		if err != nil {
			return 0, err
		}
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(files[1])
	url := "https://" + os.Getenv("KUBERNETES_SERVICE_HOST") + path
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body)) //nolint:gosec // the kubelet names the host
	if err != nil {
		return 0, err
	}
	request.Header.Set("Authorization", "Bearer "+string(files[0]))
	request.Header.Set("Content-Type", "application/json")
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	answer, err := (&http.Client{Transport: transport}).Do(request) //nolint:gosec // as above
	if err != nil {
		return 0, err
	}
	return answer.StatusCode, answer.Body.Close()
}

// misbehave is what a program does that does not link the SDK.
func misbehave(ending string) error {
	switch ending {
	case "fork":
		child := exec.CommandContext(context.Background(), "/bin/preflight", "stuck")
		return child.Start() // and leaves it alone
	case "huge":
		return leave(preflight.StateFinal, preflight.Pass, strings.Repeat("well ", 200_000), func(frame []byte) []byte { return frame })
	case "wrong-frame":
		return leave(preflight.StateFinal, preflight.Pass, "the animal is well", func(frame []byte) []byte {
			return bytes.Replace(frame, []byte("well"), []byte("ill."), 1)
		})
	case "liar":
		if err := leave(preflight.StateFinal, preflight.Pass, "the animal will be well", func(frame []byte) []byte { return frame }); err != nil {
			return err
		}
		stopped, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		<-stopped.Done()
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		if err := leave(preflight.StateRunning, preflight.Unknown, "not yet", func(frame []byte) []byte { return frame }); err != nil {
			return err
		}
		time.Sleep(time.Hour)
	case "forever":
		time.Sleep(time.Hour)
	}
	return nil
}

// leave writes a result, spoiled, into the termination message, in whatever
// room there is.
func leave(state string, outcome preflight.Outcome, message string, spoil func([]byte) []byte) error {
	frame, err := preflight.Result{State: state, RunID: os.Getenv("PREFLIGHT_RUN_ID"), Findings: []preflight.Finding{
		{Name: "Animal", Outcome: outcome, Reason: "Said", Message: message},
	}}.Frame(2 << 20)
	if err != nil {
		return err
	}
	return os.WriteFile("/dev/termination-log", spoil(frame), 0o600)
}
