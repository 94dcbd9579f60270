package release_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/cmd/oc-preflight/release"
	"github.com/openshift/update-preflight/test/apiserver"
	"github.com/openshift/update-preflight/test/exit"
	"github.com/openshift/update-preflight/test/offer"
	"github.com/openshift/update-preflight/test/program"
)

// newCluster is a cluster that the program reaches, whose release ships the check Etcd.Quorum.
func newCluster(t *testing.T) *offer.Cluster {
	t.Helper()
	c := offer.Start(t, map[string]string{"job.yaml": offer.Job})
	t.Setenv("KUBECONFIG", c.Kubeconfig)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	return c
}

// withoutSignature makes the release one that is not signed.
func withoutSignature(t *testing.T, c *offer.Cluster) {
	t.Helper()
	c.State.Signatures = nil
	c.Remove(t, "openshift-config-managed", "signatures")
	c.Apply()
}

func TestChecks(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		change func(*testing.T, *offer.Cluster)
		args   []string
		code   int
		// shown is a pattern of the whole output, and stated a part of standard error.
		shown, stated string
	}{
		"Table": {
			reason: "the checks, and where they come from", args: []string{"--to", offer.To},
			shown: `^CHECK +NAMESPACE +MANIFEST\nEtcd\.Quorum +openshift-etcd +0000_50_etcd_job\.yaml\n$`,
		},
		"Latest": {reason: "the newest release is the only one", args: []string{"--to-latest"}, shown: `\nEtcd\.Quorum `},
		"Wide": {
			reason: "their components and images", args: []string{"--to", offer.To, "-o", "wide"},
			shown: `^CHECK +NAMESPACE +COMPONENT +MANIFEST +IMAGES\nEtcd\.Quorum +openshift-etcd +etcd +0000_50_etcd_job\.yaml +127\.0\.0\.1:\d+/\S+@sha256:[0-9a-f]{64}\n$`,
		},
		"Name": {reason: "other commands accept the name", args: []string{"--to", offer.To, "-o", "name"}, shown: `^check/Etcd\.Quorum\n$`},
		"NotListed": {
			reason: "a release that the cluster does not know", args: []string{"--to", "4.19.9"}, code: exit.BadInput, shown: `^$`,
			stated: "the cluster knows no release 4.19.9; it knows 4.19.1, ",
		},
		"Unsigned": {
			reason: "what is not signed is not listed: its author is unknown", change: withoutSignature, args: []string{"--to", offer.To},
			code:  exit.Blocked,
			shown: `(?s)^CHECK +NAMESPACE +MANIFEST\n\n.*FAIL  ReleaseSignature \(NoSignature\)`,
		},
		"Tag": {
			reason: "a signature does not cover a tag", args: []string{"--to-image", "quay.io/release:4.19.1"}, code: exit.BadInput,
			shown: `^$`, stated: "quay.io/release:4.19.1",
		},
		"Format": {
			reason: "a format that lists do not have", args: []string{"--to", offer.To, "-o", "junit"}, code: exit.BadInput, shown: `^$`,
			stated: `unknown output format "junit"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			if tc.change != nil {
				tc.change(t, c)
			}
			before := len(c.Writes())
			got := program.Call(t, append([]string{"checks"}, tc.args...)...)
			if got.Code != tc.code || !regexp.MustCompile(tc.shown).MatchString(got.Stdout) || !strings.Contains(got.Stderr, tc.stated) {
				t.Errorf("%s: exit code %d, want %d\n%s%s\nwant %s", tc.reason, got.Code, tc.code, got.Stdout, got.Stderr, tc.shown)
			}
			if wrote := c.Writes()[before:]; len(wrote) > 0 {
				t.Errorf("%s: a list has written %q", tc.reason, wrote)
			}
		})
	}
}

// A script reads the checks in the document, with the findings about the release.
func TestChecksForScripts(t *testing.T) {
	c := newCluster(t)
	for format, decode := range map[string]func([]byte, any) error{
		"json": json.Unmarshal,
		"yaml": func(text []byte, into any) error { return yaml.Unmarshal(text, into) },
	} {
		var made release.Listing
		got := program.Call(t, "checks", "--to", offer.To, "-o", format)
		if err := decode([]byte(got.Stdout), &made); err != nil {
			t.Fatalf("%v\n%s%s", err, got.Stdout, got.Stderr)
		}
		if made.Kind != release.ListingKind || len(made.Checks) != 1 || made.Checks[0].Name != "Etcd.Quorum" || len(made.Checks[0].Images) != 1 ||
			len(made.Findings) != 2 {
			t.Errorf("%s: %+v", format, made)
		}
	}
	withoutSignature(t, c)
	if got := program.Call(t, "checks", "--to", offer.To, "-o", "json"); got.Code != exit.Blocked ||
		!strings.Contains(got.Stdout, `"checks": []`) {
		t.Errorf("exit code %d of a release that is not signed, want an empty list\n%s", got.Code, got.Stdout)
	}
}

// The checks of a site are listed beside those of the release.
func TestChecksOfASite(t *testing.T) {
	newCluster(t)
	directory := t.TempDir()
	site := strings.NewReplacer("openshift-etcd", "site-checks", "name: quorum", "name: backup", "quay.io/openshift/origin-etcd:latest",
		"quay.io/site/backup@sha256:"+strings.Repeat("a", 64)).Replace(offer.Job)
	if err := os.WriteFile(filepath.Join(directory, "backup.yaml"), []byte(site), 0o600); err != nil {
		t.Fatal(err)
	}
	got := program.Call(t, "checks", "--to", offer.To, "--checks", directory, "-o", "name")
	if got.Code != exit.Ready || !strings.Contains(got.Stdout, "check/Etcd.Quorum\n") || !strings.Contains(got.Stdout, "Backup\n") {
		t.Errorf("exit code %d\n%s%s", got.Code, got.Stdout, got.Stderr)
	}
}

// "verify" without flags trusts the keys and stores of the cluster.
func TestVerifyByTheCluster(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		change func(*testing.T, *offer.Cluster)
		// image is the argument, for the pull spec of the release.
		image         func(string) string
		args          []string
		code          int
		shown, stated []string
	}{
		"Signed": {reason: "the cluster has the signature and the key", shown: []string{" is signed by ", "Release Key"}},
		"Unsigned": {
			reason: "no store has a signature", change: withoutSignature, code: exit.Blocked,
			stated: []string{"error: NoSignature: ", "hint: "},
		},
		"OtherImage": {
			reason: "a signature is of one digest", code: exit.Blocked, stated: []string{"error: NoSignature: "},
			image: func(of string) string { return of[:strings.Index(of, "@")] + "@sha256:" + strings.Repeat("b", 64) },
		},
		"Mirror": {
			reason: "a mirror has the same digest", shown: []string{"mirror.example.com/release@sha256:"},
			image: func(of string) string { return "mirror.example.com/release" + of[strings.Index(of, "@"):] },
		},
		"Repository": {
			reason: "the user names the only repository that they accept", args: []string{"--repository", "quay.io/other/release"},
			code: exit.Blocked, stated: []string{"quay.io/other/release"},
		},
		"NoKeys": {
			reason: "a cluster without keys trusts nothing", code: exit.Failed,
			stated: []string{"openshift-config-managed/release-verification", "does not exist"},
			change: func(t *testing.T, c *offer.Cluster) {
				t.Helper()
				c.Remove(t, "openshift-config-managed", "release-verification")
			},
		},
		"Forbidden": {
			reason: "the roles for the command are named", code: exit.Failed, stated: []string{"oc preflight auth verify --bind user:tester"},
			change: func(_ *testing.T, c *offer.Cluster) {
				c.Deny(func(_ string, request apiserver.Request) bool { return request.Resource == "configmaps" })
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			if tc.change != nil {
				tc.change(t, c)
			}
			image := c.Image
			if tc.image != nil {
				image = tc.image(image)
			}
			got := program.Call(t, append([]string{"verify", image}, tc.args...)...)
			if got.Code != tc.code {
				t.Errorf("%s: exit code %d, want %d\n%s%s", tc.reason, got.Code, tc.code, got.Stdout, got.Stderr)
			}
			for text, parts := range map[string][]string{got.Stdout: tc.shown, got.Stderr: tc.stated} {
				for _, part := range parts {
					if !strings.Contains(text, part) {
						t.Errorf("%s: %q is not in\n%s", tc.reason, part, text)
					}
				}
			}
			if tc.code != exit.Ready && got.Stdout != "" {
				t.Errorf("%s: a failure writes to standard output:\n%s", tc.reason, got.Stdout)
			}
		})
	}
}
