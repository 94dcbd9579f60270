// Zoo is a check program for tests on real nodes. Its argument selects how it ends.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: preflight ENDING")
		os.Exit(preflight.ExitUsage)
	}
	ending := os.Args[1]
	os.Args = os.Args[:1] // the SDK has arguments of its own
	switch ending {
	case "silent":
		return
	case "plain-pass":
		fmt.Println("all is well")
	case "plain-fail":
		fmt.Println("checking the widget")
		fmt.Fprintln(os.Stderr, "the widget is too old for the target")
		os.Exit(1)
	case "oom":
		exhaustMemory()
	case "liar", "stubborn", "forever":
		if err := withoutSDK(ending); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case "torrent", "scratch", "swarm", "forkbomb", "impostor", "hostile":
		if err := attack(ending); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	default:
		preflight.Main(preflight.Check{Name: "Animal", Description: "The animal is well.", Run: behavior(ending)})
	}
}

// behavior returns the function of a check of the SDK.
func behavior(ending string) func(context.Context, *preflight.T) error {
	return func(ctx context.Context, t *preflight.T) error {
		t.Remedyf("feed the animal")
		switch ending {
		case "pass":
			// Kubernetes records the end of a container in whole seconds only.
			t.Evidence("ended", time.Now().Format(time.RFC3339Nano))
		case "warn":
			t.Warnf("the animal looks pale")
		case "fail":
			t.Failf("the animal is ill")
		case "skip":
			t.Skipf("there is no animal here")
		case "unknown":
			return errors.New("the animal hides")
		case "write":
			return write(ctx)
		case "slow":
			// Longer than the resolution of one second of recorded times.
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(3 * time.Second):
			}
		case "sleep":
			t.Logf("waiting for the deadline")
			<-ctx.Done()
			return context.Cause(ctx)
		case "stuck":
			t.Logf("ignoring the deadline")
			time.Sleep(time.Hour) // regardless of ctx
		default:
			return conformanceBehavior(ctx, t, ending)
		}
		return nil
	}
}

// write tries to create a ConfigMap with the token of its ServiceAccount.
func write(ctx context.Context) error {
	const account = "/var/run/secrets/kubernetes.io/serviceaccount/"
	token, err := os.ReadFile(account + "token")
	if err != nil {
		return err
	}
	authority, err := os.ReadFile(account + "ca.crt")
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	body := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"droppings"}}`
	url := "https://" + os.Getenv("KUBERNETES_SERVICE_HOST") + "/api/v1/namespaces/openshift-zoo/configmaps"
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body)) //nolint:gosec // the kubelet names the host
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+string(token))
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request) //nolint:gosec // the kubelet names the host
	if err != nil {
		return err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(io.LimitReader(response.Body, 4096))
	if err != nil || response.StatusCode == http.StatusCreated {
		return err
	}
	return fmt.Errorf("the API server responded with %s: %s", response.Status, content)
}

// exhaustMemory allocates memory until the process is killed.
func exhaustMemory() {
	var allocated [][]byte
	for {
		block := make([]byte, 1<<20)
		for i := range block {
			block[i] = 1
		}
		allocated = append(allocated, block)
		fmt.Fprintf(os.Stderr, "%d MiB allocated\n", len(allocated))
	}
}
