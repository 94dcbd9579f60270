package finding_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/openshift/update-preflight/collector/finding"
)

func TestValidName(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, name string
		want         bool
	}{
		"Letters":    {reason: "CamelCase", name: "RiskA", want: true},
		"Everything": {reason: "digits, dots and dashes may follow", name: "AdminAck-ack-4.18-x-", want: true},
		"Longest":    {reason: "256 bytes", name: "A" + strings.Repeat("a", 255), want: true},
		"TooLong":    {reason: "257 bytes", name: "A" + strings.Repeat("a", 256)},
		"Empty":      {reason: "a name has a letter"},
		"SmallCase":  {reason: "the first letter is a capital", name: "riskA"},
		"Digit":      {reason: "the first character is a letter", name: "4Risk"},
		"Underscore": {reason: "no other characters", name: "Risk_A"},
		"Unicode":    {reason: "no letters outside ASCII", name: "RiskÄ"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := finding.ValidName(tc.name); got != tc.want {
				t.Errorf("%s: ValidName(%q) = %t, want %t", tc.reason, tc.name, got, tc.want)
			}
		})
	}
}

func TestNameOf(t *testing.T) {
	for name, tc := range map[string]struct{ reason, object, want string }{
		"Valid":   {reason: "a valid name is kept", object: "ns.etcd.v1.2.3", want: "Kind-ns.etcd.v1.2.3"},
		"Others":  {reason: "a dash for each other character", object: "quay.io:443/a_b", want: "Kind-quay.io-443-a-b"},
		"Around":  {reason: "no dashes around the object", object: "[::1]:8080/", want: "Kind-1--8080"},
		"Unicode": {reason: "one dash for each character", object: "aäb", want: "Kind-a-b"},
		"Long":    {reason: "cut to 256 bytes", object: strings.Repeat("x", 300), want: "Kind-" + strings.Repeat("x", 251)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := finding.NameOf("Kind", tc.object); got != tc.want {
				t.Errorf("%s: NameOf(%q) = %q, want %q", tc.reason, tc.object, got, tc.want)
			}
		})
	}
}

// FuzzNameOf checks that every object has a finding that can be accepted.
func FuzzNameOf(f *testing.F) {
	for _, seed := range []string{"quay.io/health", "[::1]:8080/", "", "/", "ä/%", strings.Repeat("x", 300)} {
		f.Add(seed)
	}
	rule := regexp.MustCompile(`^[A-Z][A-Za-z0-9.-]*$`)
	f.Fuzz(func(t *testing.T, object string) {
		name := finding.NameOf("ExternalDependency", object)
		if !rule.MatchString(name) || len(name) > 256 || !finding.ValidName(name) {
			t.Errorf("%q makes the name %q", object, name)
		}
	})
}
