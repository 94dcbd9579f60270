package preflight_test

import (
	"context"
	"os/exec"
	"strings"
	"testing"
)

// A team that links the SDK must not inherit one module from it: not a
// Kubernetes version, not a line in go.sum.
func TestNoRequirementsAtAll(t *testing.T) {
	const module = "github.com/openshift/update-preflight/preflight-sdk"
	cases := map[string]struct {
		reason string
		args   []string
		want   string
	}{
		"Modules": {
			reason: "The module graph is the SDK alone, for its tests too",
			args:   []string{"list", "-m", "all"},
			want:   module,
		},
		"Packages": {
			reason: "Only the standard library is imported",
			args:   []string{"list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "."},
			want:   module,
		},
		"GoVersion": {
			reason: "An operator on the oldest Go that is supported can link it",
			args:   []string{"list", "-m", "-f", "{{.GoVersion}}"},
			want:   "1.23",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			command := exec.CommandContext(context.Background(), "go", tc.args...)
			// In a workspace the other modules would be listed.
			command.Env = append(command.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly")
			out, err := command.CombinedOutput()
			if got := strings.TrimSpace(string(out)); err != nil || got != tc.want {
				t.Errorf("%s: go %s: %v\ngot  %s\nwant %s", tc.reason, strings.Join(tc.args, " "), err, got, tc.want)
			}
		})
	}
}
