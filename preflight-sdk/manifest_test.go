package preflight_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

var rewrite = flag.Bool("update", false, "rewrite the golden files")

// checkWithRules returns a check that passes and has these rules.
func checkWithRules(name string, rules ...preflight.Rule) preflight.Check {
	return preflight.Check{Name: name, Rules: rules, Run: pass}
}

func TestManifest(t *testing.T) {
	nodes := preflight.Rule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"list"}}
	secrets := preflight.Rule{
		Namespace: "openshift-etcd", APIGroups: []string{""}, Resources: []string{"secrets"},
		ResourceNames: []string{"etcd-client", "0x1f", "true", `system:"a"`}, Verbs: []string{"get"},
	}
	cases := map[string]struct {
		reason string
		file   string
		checks []preflight.Check
	}{
		"Rules": {
			"The manifest has a cluster role, a role per namespace, and no duplicate rules", "rules.yaml",
			[]preflight.Check{
				checkWithRules("A", secrets, nodes),
				checkWithRules("B", nodes, preflight.Rule{
					Namespace: "kube-system", APIGroups: []string{"apps", "extensions"},
					Resources: []string{"deployments/status", "deployments"}, Verbs: []string{"get", "list", "watch"},
				}),
				checkWithRules("C", secrets),
			},
		},
		"NoRules": {"Without rules the account has no role", "no-rules.yaml", []preflight.Check{checkWithRules("A")}},
	}
	options := preflight.ManifestOptions{
		Name: "etcd-preflight", Namespace: "openshift-etcd-operator",
		Image: "quay.io/openshift/origin-etcd:latest",
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := preflight.Manifest(options, tc.checks...)
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", "manifest", tc.file)
			if *rewrite {
				if err := os.WriteFile(golden, got, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if want := string(readFile(t, golden)); string(got) != want {
				t.Errorf("%s; if the change is intended, run go test -run Manifest -update; got\n%s\nwant\n%s", tc.reason, got, want)
			}

			var stdout, stderr strings.Builder
			p := preflight.Program{
				Args:   []string{"--print-manifest", "--image=" + options.Image, "--name=" + options.Name, "--namespace=" + options.Namespace},
				Stdout: &stdout, Stderr: &stderr, TerminationLog: missingLog(t),
			}
			if code := p.Run(context.Background(), tc.checks...); code != 0 || stderr.Len() > 0 || stdout.String() != string(got) {
				t.Errorf("%s: --print-manifest: exit code %d, standard error %q, standard output\n%s", tc.reason, code, stderr.String(),
					stdout.String())
			}
		})
	}
}

func TestInvalidManifestOptions(t *testing.T) {
	good := preflight.ManifestOptions{Name: "a", Namespace: "b", Image: "c"}
	cases := map[string]struct {
		reason string
		change func(*preflight.ManifestOptions)
		want   string
	}{
		"NoName": {
			"A Job has a name", func(o *preflight.ManifestOptions) { o.Name = "" },
			`manifest: name "": want at most 40 lower-case letters, digits and dashes`,
		},
		"LongName": {
			"The runner appends a suffix to the name", func(o *preflight.ManifestOptions) { o.Name = strings.Repeat("a", 41) },
			`manifest: name "` + strings.Repeat("a", 41) + `": want at most 40 lower-case letters, digits and dashes`,
		},
		"Name": {
			"A line break cannot get into the YAML", func(o *preflight.ManifestOptions) { o.Name = "a\nb" },
			`manifest: name "a\nb": want at most 40 lower-case letters, digits and dashes`,
		},
		"Namespace": {
			"A Job has a namespace", func(o *preflight.ManifestOptions) { o.Namespace = "" },
			`manifest: namespace "": want at most 63 lower-case letters, digits and dashes`,
		},
		"Image": {
			"A Job has an image", func(o *preflight.ManifestOptions) { o.Image = "a b" },
			`manifest: image "a b": want a pull spec like quay.io/openshift/origin-example-operator:latest`,
		},
		"All": {
			"The error lists all violations", func(o *preflight.ManifestOptions) { *o = preflight.ManifestOptions{} },
			`manifest: name "": want at most 40 lower-case letters, digits and dashes; namespace "": want at most 63 lower-case letters, digits and dashes; image "": want a pull spec like quay.io/openshift/origin-example-operator:latest`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			options := good
			tc.change(&options)
			text, err := preflight.Manifest(options, checkWithRules("A"))
			if err == nil || err.Error() != tc.want || text != nil {
				t.Errorf("%s: got %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
	if _, err := preflight.Manifest(good); err == nil {
		t.Error("a manifest without checks: want an error")
	}
}

func TestRuleViolations(t *testing.T) {
	good := preflight.Rule{
		Namespace: "a", APIGroups: []string{"", "apps.openshift.io"}, Resources: []string{"pods", "pods/log"},
		ResourceNames: []string{"system:admin"}, Verbs: []string{"get", "list", "watch"},
	}
	cases := map[string]struct {
		reason string
		change func(*preflight.Rule)
		want   string
	}{
		"Valid": {"Read access is allowed", func(*preflight.Rule) {}, ""},
		"Empty": {"An empty rule is invalid", func(r *preflight.Rule) { *r = preflight.Rule{} }, "no API group; no resource; no verb"},
		"Create": {
			"A check is read-only", func(r *preflight.Rule) { r.Verbs = []string{"get", "create"} },
			`verb "create": want get, list or watch`,
		},
		"AllVerbs": {
			"All verbs include write access", func(r *preflight.Rule) { r.Verbs = []string{"*"} },
			`verb "*": want get, list or watch`,
		},
		"Exec": {
			"get of pods/exec allows any change", func(r *preflight.Rule) { r.Resources = []string{"pods/exec"} },
			`resource "pods/exec": want a plural in lower case, without exec, attach, portforward and proxy`,
		},
		"Proxy": {
			"get of nodes/proxy allows any change", func(r *preflight.Rule) { r.Resources = []string{"nodes/proxy"} },
			`resource "nodes/proxy": want a plural in lower case, without exec, attach, portforward and proxy`,
		},
		"All": {
			"All resources include secrets", func(r *preflight.Rule) { r.Resources = []string{"*"} },
			`resource "*": want a plural in lower case, without exec, attach, portforward and proxy`,
		},
		"AllSub": {
			"All subresources include connections", func(r *preflight.Rule) { r.Resources = []string{"pods/*"} },
			`resource "pods/*": want a plural in lower case, without exec, attach, portforward and proxy`,
		},
		"Kind": {
			"A kind is not a resource and would grant nothing", func(r *preflight.Rule) { r.Resources = []string{"Pod"} },
			`resource "Pod": want a plural in lower case, without exec, attach, portforward and proxy`,
		},
		"AllGroups": {
			"Groups must be named", func(r *preflight.Rule) { r.APIGroups = []string{"*"} },
			`API group "*": want a group without a version, "" for the core group`,
		},
		"Version": {
			"A group has no version", func(r *preflight.Rule) { r.APIGroups = []string{"apps/v1"} },
			`API group "apps/v1": want a group without a version, "" for the core group`,
		},
		"Namespace": {
			"A namespace has no wildcard", func(r *preflight.Rule) { r.Namespace = "*" },
			`namespace "*": want the name of a namespace or an empty string`,
		},
		"EmptyName": {
			"An empty name matches no object", func(r *preflight.Rule) { r.ResourceNames = []string{""} },
			`resource name "": want the name of an object`,
		},
		"ControlName": {
			"A line break cannot get into the YAML", func(r *preflight.Rule) { r.ResourceNames = []string{"a\n- b"} },
			`resource name "a\n- b": want the name of an object`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			rule := good
			tc.change(&rule)
			finding := checkWithRules("A", good, rule).Evaluate(context.Background(), preflight.Update{}, nil)
			want := "Pass Passed "
			if tc.want != "" {
				want = "Unknown InvalidCheck rule 2 of check \"A\": " + strings.ReplaceAll(tc.want, "; ", "; rule 2 of check \"A\": ")
			}
			if outcomeLine(finding) != want {
				t.Errorf("%s: got %q, want %q", tc.reason, outcomeLine(finding), want)
			}
		})
	}
}
