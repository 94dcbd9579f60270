package preflight_test

import (
	"context"
	"os/exec"
	"strings"
	"testing"
)

// A team that links the SDK inherits no module from it, such as a version of
// Kubernetes.
func TestNoRequirements(t *testing.T) {
	const module = "github.com/openshift/update-preflight/preflight-sdk"
	cases := map[string]struct {
		reason string
		args   []string
		want   string
	}{
		"Modules": {
			reason: "The module graph consists of the SDK only, including its tests",
			args:   []string{"list", "-m", "all"},
			want:   module,
		},
		"Packages": {
			reason: "Only the standard library and the SDK itself are imported",
			args:   []string{"list", "-deps", "-f", `{{if not (or .Standard (eq .Module.Path "` + module + `"))}}{{.ImportPath}}{{end}}`, "."},
			want:   "",
		},
		"GoVersion": {
			reason: "Operators on the oldest supported Go version can link the SDK",
			args:   []string{"list", "-m", "-f", "{{.GoVersion}}"},
			want:   "1.23",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			command := exec.CommandContext(context.Background(), "go", tc.args...)
			// A workspace would add its other modules to the list.
			command.Env = append(command.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly")
			out, err := command.CombinedOutput()
			if got := strings.TrimSpace(string(out)); err != nil || got != tc.want {
				t.Errorf("%s: go %s: %v\ngot  %s\nwant %s", tc.reason, strings.Join(tc.args, " "), err, got, tc.want)
			}
		})
	}
}
