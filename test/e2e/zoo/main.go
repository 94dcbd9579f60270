// Zoo is a check program that ends in whatever way its first argument says, so
// that each of them can be seen on a real node.
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
		fmt.Println("looking around")
		fmt.Fprintln(os.Stderr, "the widget is too old for the target")
		os.Exit(1)
	case "oom":
		devour()
	case "fork", "huge", "wrong-frame", "liar", "stubborn", "forever":
		if err := misbehave(ending); err != nil {
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

// behavior is what a check of the SDK does.
func behavior(ending string) func(context.Context, *preflight.T) error {
	return func(ctx context.Context, t *preflight.T) error {
		t.Remedyf("feed the animal")
		switch ending {
		case "pass":
			// Kubernetes keeps the end of a container to the second only.
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
			// Long enough to be seen in times that are kept to the second.
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(3 * time.Second):
			}
		case "sleep":
			t.Logf("falling asleep")
			<-ctx.Done()
			return context.Cause(ctx)
		case "stuck":
			t.Logf("digging in")
			time.Sleep(time.Hour) // it is what a stuck program does
		default:
			return habit(ctx, t, ending)
		}
		return nil
	}
}

// write tries to create a ConfigMap, as its ServiceAccount may.
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
	defer response.Body.Close() //nolint:errcheck // nothing is lost with it
	answer, err := io.ReadAll(io.LimitReader(response.Body, 4096))
	if err != nil || response.StatusCode == http.StatusCreated {
		return err
	}
	return fmt.Errorf("the API server answered %s: %s", response.Status, answer)
}

// devour takes memory until there is none.
func devour() {
	var eaten [][]byte
	for {
		block := make([]byte, 1<<20)
		for i := range block {
			block[i] = 1
		}
		eaten = append(eaten, block)
		fmt.Fprintf(os.Stderr, "%d MiB eaten\n", len(eaten))
	}
}
