package update_test

import (
	"testing"

	"github.com/blang/semver/v4"

	"github.com/openshift/update-preflight/collector/update"
)

func TestKind(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		from, to string
		want     update.Kind
		leaves   bool
	}{
		"Same":      {reason: "the same release", from: "4.18.3", to: "4.18.3", want: update.Same},
		"Patch":     {reason: "same minor version", from: "4.18.3", to: "4.18.16", want: update.Patch},
		"Minor":     {reason: "next minor version", from: "4.18.3", to: "4.19.0", want: update.Minor, leaves: true},
		"SkipLevel": {reason: "two minor versions up", from: "5.0.1", to: "5.2.0", want: update.SkipLevel, leaves: true},
		"Major": {
			reason: "a later major version is Major, with any minor version", from: "4.23.1", to: "5.0.0", want: update.Major,
			leaves: true,
		},
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

func TestKubernetes(t *testing.T) {
	for version, tc := range map[string]struct {
		reason string
		want   uint64
	}{
		"4.0.0":       {reason: "4.0 does not exist"},
		"4.1.0":       {reason: "the first release", want: 13},
		"4.2.36":      {reason: "the next release", want: 14},
		"4.3.0":       {reason: "4.3 skipped Kubernetes 1.15", want: 16},
		"4.8.0":       {reason: "the release in the tests of the skew policy", want: 21},
		"4.18.3":      {reason: "y+13", want: 31},
		"4.19.0-rc.1": {reason: "a candidate has the Kubernetes of its release", want: 32},
		"4.23.1":      {reason: "the last minor version of 4", want: 36},
		"4.24.0":      {reason: "4.24 is unknown"},
		"5.0.0":       {reason: "the same as 4.23", want: 36},
		"5.2.9":       {reason: "one Kubernetes for each minor version", want: 38},
		"5.3.0":       {reason: "5.3 is unknown"},
		"1.31.0":      {reason: "Kubernetes is not OpenShift"},
		"3.11.0":      {reason: "CVO does not update 3.11"},
		"6.0.0":       {reason: "6.0 is unknown"},
	} {
		t.Run(version, func(t *testing.T) {
			got, known := update.Kubernetes(semver.MustParse(version))
			if got != tc.want || known != (tc.want != 0) {
				t.Errorf("%s: Kubernetes(%s) = %d, %v, want %d", tc.reason, version, got, known, tc.want)
			}
		})
	}
}

func TestNext(t *testing.T) {
	for version, tc := range map[string]struct{ reason, want string }{
		"4.18.3": {reason: "the next minor version, without the patch", want: "4.19.0"},
		"4.22.1": {reason: "the next minor version of 4", want: "4.23.0"},
		"4.23.0": {reason: "5.0 follows the last of 4", want: "5.0.0"},
		"5.0.0":  {reason: "the next minor version of 5", want: "5.1.0"},
		"5.2.0":  {reason: "the next minor version is unknown"},
		"6.0.0":  {reason: "6.0 is unknown"},
	} {
		t.Run(version, func(t *testing.T) {
			got, known := update.Next(semver.MustParse(version))
			if known != (tc.want != "") || (known && got.String() != tc.want) {
				t.Errorf("%s: Next(%s) = %s, %v, want %q", tc.reason, version, got, known, tc.want)
			}
		})
	}
}

func TestFirstWith(t *testing.T) {
	for minor, tc := range map[uint64]struct{ reason, want string }{
		0:  {reason: "every release has a later Kubernetes", want: "4.1"},
		15: {reason: "4.3 skipped it", want: "4.3"},
		16: {reason: "4.3 is the first", want: "4.3"},
		32: {reason: "y+13", want: "4.19"},
		36: {reason: "4.23 has it first, 5.0 as well", want: "4.23"},
		37: {reason: "5.1 is the next release with a later Kubernetes", want: "5.1"},
		39: {reason: "no known release has it"},
	} {
		got, known := update.FirstWith(minor)
		if got != tc.want || known != (tc.want != "") {
			t.Errorf("%s: FirstWith(%d) = %q, %v, want %q", tc.reason, minor, got, known, tc.want)
		}
	}
}

// Every known hop updates Kubernetes by one minor version or, to 5.0, by none, which
// the rules for kubelets depend on.
func TestHopsAreSmall(t *testing.T) {
	release := semver.Version{Major: 4, Minor: 3}
	hops := 0
	for next, known := update.Next(release); known; next, known = update.Next(release) {
		before, _ := update.Kubernetes(release)
		after, _ := update.Kubernetes(next)
		if after-before > 1 || (after == before) != (next.Major > release.Major) {
			t.Errorf("Kubernetes goes from 1.%d to 1.%d between %s and %s", before, after, release, next)
		}
		release = next
		hops++
	}
	if hops != 23 {
		t.Errorf("%d hops from 4.3 to %s, want 23", hops, release)
	}
}
