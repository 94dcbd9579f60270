package update_test

import (
	"testing"

	"github.com/openshift/update-preflight/collector/update"
)

func TestKind(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		from, to string
		want     update.Kind
		leaves   bool
	}{
		"Same":         {reason: "the same release", from: "4.18.3", to: "4.18.3", want: update.Same},
		"Patch":        {reason: "same minor version", from: "4.18.3", to: "4.18.16", want: update.Patch},
		"Minor":        {reason: "next minor version", from: "4.18.3", to: "4.19.0", want: update.Minor, leaves: true},
		"SkipLevel":    {reason: "two minor versions up", from: "5.0.1", to: "5.2.0", want: update.SkipLevel, leaves: true},
		"Major":        {reason: "a later major version is Major, with any minor version", from: "4.23.1", to: "5.0.0", want: update.Major, leaves: true},
		"Rollback":     {reason: "an earlier version of the same minor version", from: "4.18.16", to: "4.18.3", want: update.Rollback},
		"RollbackDown": {reason: "an earlier minor version is a rollback", from: "4.18.16", to: "4.17.3", want: update.Rollback},
		"Candidate":    {reason: "a release candidate precedes its release", from: "4.18.0-rc.1", to: "4.18.0", want: update.Patch},
	} {
		t.Run(name, func(t *testing.T) {
			u, err := update.Parse(tc.from, tc.to)
			if err != nil {
				t.Fatal(err)
			}
			if got := u.Kind(); got != tc.want {
				t.Errorf("%s: Kind(%s -> %s) = %s, want %s", tc.reason, tc.from, tc.to, got, tc.want)
			}
			if got := u.LeavesMinor(); got != tc.leaves {
				t.Errorf("%s: LeavesMinor(%s -> %s) = %v, want %v", tc.reason, tc.from, tc.to, got, tc.leaves)
			}
		})
	}
}

func TestParseErrors(t *testing.T) {
	for name, tc := range map[string]struct{ reason, from, to string }{
		"From": {reason: "4.18 has no patch level", from: "4.18", to: "4.19.0"},
		"To":   {reason: "a tag is not a version", from: "4.18.0", to: "latest"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := update.Parse(tc.from, tc.to); err == nil {
				t.Errorf("%s: Parse(%q, %q) succeeded", tc.reason, tc.from, tc.to)
			}
		})
	}
}
