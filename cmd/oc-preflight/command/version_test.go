package command_test

import (
	"strings"
	"testing"

	"github.com/openshift/update-preflight/test/apiserver"
	"github.com/openshift/update-preflight/test/exit"
	"github.com/openshift/update-preflight/test/openshift"
	"github.com/openshift/update-preflight/test/program"
	"github.com/openshift/update-preflight/test/records"
)

// The versions of the cluster are printed if it responds; the version of the program needs none.
func TestVersion(t *testing.T) {
	server := apiserver.Start(t)
	if err := openshift.Apply(t.Context(), server.Config(), records.State()); err != nil {
		t.Fatal(err)
	}
	refusing := apiserver.Start(t)
	refusing.Deny(func(string, apiserver.Request) bool { return true })
	for name, tc := range map[string]struct {
		reason         string
		args           []string
		shown, missing string
		// stated is a part of standard error.
		stated string
	}{
		"Cluster": {
			reason: "the cluster responds", args: []string{"--kubeconfig", server.Kubeconfig},
			shown: "Cluster    4.18.3\nKubernetes v1.31.8\n",
		},
		"Client": {
			reason: "no cluster is requested", args: []string{"--client", "--kubeconfig", server.Kubeconfig}, shown: "Client ",
			missing: "Cluster",
		},
		"Refused": {
			reason: "what may not be read is stated, and is no failure", args: []string{"--kubeconfig", refusing.Kubeconfig},
			shown: "Client ", missing: "Cluster ", stated: "forbidden",
		},
		"JSON": {
			reason: "a script reads the fields", args: []string{"-o", "json", "--kubeconfig", server.Kubeconfig},
			shown: `"cluster": "4.18.3"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := program.Call(t, append([]string{"version"}, tc.args...)...)
			if got.Code != exit.Ready || !strings.Contains(got.Stdout, tc.shown) || tc.missing != "" && strings.Contains(got.Stdout, tc.missing) ||
				!strings.Contains(got.Stderr, tc.stated) {
				t.Errorf("%s: exit code %d\n%s%s", tc.reason, got.Code, got.Stdout, got.Stderr)
			}
		})
	}
}
