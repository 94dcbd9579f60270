package command_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/rogpeppe/go-internal/testscript"
)

// attackers are hostile servers that a script may contact.
type attackers struct {
	// requests is the number of requests that the API server received.
	requests atomic.Int64
}

// attackersKey is their key among the values of a script.
type attackersKey struct{}

// startAttackers gives a script the kubeconfig "hostile" of an API server that
// responds to every request with an empty object, and the URL PROXY of a proxy that
// responds to every request with the forged signature.
func startAttackers(env *testscript.Env, forged []byte) error {
	hostile := &attackers{}
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		hostile.requests.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte("{}"))
	}))
	env.Defer(api.Close)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(forged) }))
	env.Defer(proxy.Close)
	env.Values[attackersKey{}] = hostile
	env.Setenv("PROXY", proxy.URL)
	config := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c,
 clusters: [{name: c, cluster: {server: %q}}], contexts: [{name: c, context: {cluster: c}}]}`, api.URL)
	return os.WriteFile(filepath.Join(env.WorkDir, "hostile"), []byte(config), 0o600)
}

// requested compares the number of requests to the hostile API server: requested none,
// or requested some.
func requested(script *testscript.TestScript, _ bool, args []string) {
	hostile, ok := script.Value(attackersKey{}).(*attackers)
	if !ok {
		script.Fatalf("the script has no attackers")
	}
	if requests := hostile.requests.Load(); len(args) != 1 || (requests == 0) != (args[0] == "none") {
		script.Fatalf("the hostile API server received %d requests, want %v", requests, args)
	}
}
