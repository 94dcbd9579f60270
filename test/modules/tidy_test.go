package modules_test

import (
	"strings"
	"testing"

	"github.com/openshift/update-preflight/test/modules"
)

func TestTidy(t *testing.T) {
	const unused = "-- repo.go --\npackage repo\n"
	for name, tc := range map[string]struct {
		reason string
		change string
		want   string // in the new go.mod; no change if empty
	}{
		"Unpublished": {reason: "a sibling that is not published is taken from the working tree, and leaves no replacement"},
		"Unused":      {reason: "a requirement that no package needs is removed", change: unused, want: "module example.com/repo\n\ngo 1.26.0\n"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := repository(t, workspace, tc.change)
			published, err := modules.Published(dir)
			if err != nil {
				t.Fatal(err)
			}
			changed, err := published[0].Tidy(t.Context(), dir, published)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(changed["go.mod"]); got != tc.want {
				t.Errorf("%s: go.mod becomes %q, want %q", tc.reason, got, tc.want)
			}
			if sums := changed["go.sum"]; len(sums) > 0 {
				t.Errorf("%s: go.sum becomes %q, want none", tc.reason, sums)
			}
		})
	}
}

func TestTidyNamesTheModule(t *testing.T) {
	dir := repository(t, workspace, "-- repo.go --\npackage repo\n\nimport _ \"example.com/repo/lib/missing\"\n")
	published, err := modules.Published(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := published[0].Tidy(t.Context(), dir, published); err == nil || !strings.Contains(err.Error(), "example.com/repo/lib/missing") {
		t.Errorf("want an error that names the package which does not exist, got %v", err)
	}
}
