package site_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/runner/payload"
	"github.com/openshift/update-preflight/runner/site"
)

// job is a Job with a name, an image and more lines of the specification of its pod.
func job(name, image string, more ...string) string {
	return fmt.Sprintf(`apiVersion: batch/v1
kind: Job
metadata:
  name: %s
  namespace: site-checks
  annotations: {openshift.io/preflight-check: "true"}
spec:
  template:
    spec:
      containers: [{name: preflight, image: %q}]
`, name, image) + strings.Join(more, "")
}

const hostNetwork = "      hostNetwork: true\n"

// drafted returns the names of the checks that may run, and those that are inconclusive, with
// their reasons.
func drafted(t *testing.T, files map[string]string) (checks, inconclusive []string) {
	t.Helper()
	contents := map[string][]byte{}
	for name, content := range files {
		contents[name] = []byte(content)
	}
	read := site.NewChecks()
	read.Add(site.Source{Name: "./checks", Files: contents}, contents)
	draft := jobplan.New("", &payload.Release{}).WithSite(jobplan.New("", read.Release))
	for _, check := range draft.Checks {
		checks = append(checks, check.Name)
		if !check.Site || check.Component != "site" || !strings.HasPrefix(check.File, "checks/") {
			t.Errorf("%+v is not of the site", check)
		}
	}
	for _, f := range slices.Concat(read.Findings, draft.Refused) {
		if f.Outcome == preflight.Pass {
			continue
		}
		inconclusive = append(inconclusive, fmt.Sprintf("%s %s %s", f.Outcome, f.Name, f.Reason))
		if f.Remediation == "" {
			t.Errorf("no remedy: %+v", f)
		}
		if f.Blocks != (f.Outcome == preflight.Unknown) {
			t.Errorf("blocks %t: %+v", f.Blocks, f)
		}
	}
	return checks, inconclusive
}

func TestManifests(t *testing.T) {
	for name, tc := range map[string]struct {
		reason       string
		files        map[string]string
		checks       []string
		inconclusive []string
	}{
		"One": {
			reason: "the names start with Site", files: map[string]string{"backup.yaml": job("backup-done", pullSpec)},
			checks: []string{"Site.BackupDone"},
		},
		"Tag": {
			reason: "images are digests", files: map[string]string{"a.yaml": job("a", "registry.example.com/checks:v1")},
			inconclusive: []string{"Unknown Site.A RefusedImage"},
		},
		"Privileged": {
			reason: "the policy is that for releases",
			files:  map[string]string{"a.yaml": job("a", pullSpec, hostNetwork), "b.yaml": job("b", pullSpec)},
			checks: []string{"Site.B"}, inconclusive: []string{"Unknown Site.A RefusedPodSecurity"},
		},
		"NoNamespace": {
			reason: "no namespace is assumed", files: map[string]string{"a.yaml": strings.Replace(job("a", pullSpec), "  namespace: site-checks\n",
				"", 1), "b.yaml": job("b", pullSpec)},
			checks: []string{"Site.B"}, inconclusive: []string{"Unknown SiteManifest.A InvalidNamespace"},
		},
		"OtherNamespace": {
			reason: "a ServiceAccount of another namespace gets no permissions",
			files: map[string]string{"a.yaml": job("a", pullSpec, "      serviceAccountName: a\n") + `---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: a, namespace: site-checks, annotations: {openshift.io/preflight-check: "true"}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: a, namespace: kube-system, annotations: {openshift.io/preflight-check: "true"}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{kind: ServiceAccount, name: a, namespace: site-checks}, {kind: ServiceAccount, name: default, namespace: kube-system}]
`},
			inconclusive: []string{"Unknown Site.A RefusedRBAC"},
		},
		"WritingRole": {
			reason: "a role reads only",
			files: map[string]string{"a.yaml": job("a", pullSpec, "      serviceAccountName: a\n") + `---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: a, namespace: site-checks, annotations: {openshift.io/preflight-check: "true"}}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a, annotations: {openshift.io/preflight-check: "true"}}, rules: [{apiGroups: [""], resources: [pods], verbs: [delete]}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: a, annotations: {openshift.io/preflight-check: "true"}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: a}
subjects: [{kind: ServiceAccount, name: a, namespace: site-checks}]
`},
			inconclusive: []string{"Unknown Site.A RefusedRBAC"},
		},
		"Twice": {
			reason: "two Jobs have the same name", files: map[string]string{"a.yaml": job("a", pullSpec), "b.yaml": job("a", pullSpec)},
			checks: []string{"Site.A"}, inconclusive: []string{"Unknown SiteManifest.B DuplicateManifest"},
		},
		"Broken": {
			reason: "a check that cannot be read never disappears",
			files:  map[string]string{"a.yaml": job("a", pullSpec), "b.yaml": "openshift.io/preflight-check: ["},
			checks: []string{"Site.A"}, inconclusive: []string{"Unknown SiteManifest.B BrokenPreflight"},
		},
		"NotAnnotated": {
			reason: "a Job without the annotation is reported",
			files:  map[string]string{"a.yaml": job("a", pullSpec), "b.yaml": "{apiVersion: batch/v1, kind: Job, metadata: {name: b}}"},
			checks: []string{"Site.A"}, inconclusive: []string{"Warn SiteChecks SiteManifestUnused"},
		},
		"None": {
			reason:       "a directory without a check is inconclusive",
			files:        map[string]string{"a.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}"},
			inconclusive: []string{"Unknown SiteChecks SiteChecksNotRead"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			checks, inconclusive := drafted(t, tc.files)
			if diff := cmp.Diff(tc.checks, checks); diff != "" {
				t.Errorf("%s: the checks (-want, +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.inconclusive, inconclusive); diff != "" {
				t.Errorf("%s: the others (-want, +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// Two sources may not have the same Job: which of them runs would depend on their order.
func TestSourcesWithOneJob(t *testing.T) {
	read := site.NewChecks()
	for _, name := range []string{"one", "two"} {
		files := map[string][]byte{"a.yaml": []byte(job("a", pullSpec))}
		read.Add(site.Source{Name: name, Files: files}, files)
	}
	draft := jobplan.New("", read.Release)
	if len(draft.Checks) != 1 || len(draft.Refused) != 1 || !strings.Contains(draft.Refused[0].Message, "one/a.yaml") ||
		!strings.Contains(draft.Refused[0].Message, "two/a.yaml") {
		t.Errorf("want one check, and a finding with both files: %+v", draft)
	}
}

// newDirectory returns a directory with files. A content that begins with "-> " is the
// target of a symbolic link.
func newDirectory(t *testing.T, files map[string]string) string {
	t.Helper()
	directory := t.TempDir()
	for file, content := range files {
		file = filepath.Join(directory, file)
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			t.Fatal(err)
		}
		write := func() error { return os.WriteFile(file, []byte(content), 0o600) }
		if target, ok := strings.CutPrefix(content, "-> "); ok {
			write = func() error { return os.Symlink(target, file) }
		}
		if err := write(); err != nil {
			t.Fatal(err)
		}
	}
	return directory
}

// many are n files with an extension.
func many(n int, extension string) map[string]string {
	files := map[string]string{}
	for i := range n {
		files[fmt.Sprintf("f%05d%s", i, extension)] = "{}"
	}
	return files
}

func TestAttacksByDirectory(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		files  map[string]string
		want   []string
		err    string
	}{
		"Manifests": {
			reason: "the extensions are those of a release",
			files:  map[string]string{"a.yaml": "a", "b.yml": "b", "c.json": "c", "README.md": "d", "e.sh": "e"},
			want:   []string{"a.yaml", "b.yml", "c.json"},
		},
		"Below": {
			reason: "directories below are read, hidden ones are not",
			files:  map[string]string{"x/y/a.yaml": "a", ".git/b.yaml": "b", ".c.yaml": "c"}, want: []string{"x/y/a.yaml"},
		},
		"LinkWithin": {
			reason: "a link to a file of the directory is that file, as in a mounted ConfigMap",
			files:  map[string]string{"..data/a.yaml": "a", "a.yaml": "-> ..data/a.yaml"}, want: []string{"a.yaml"},
		},
		"LinkOutside": {
			reason: "no file outside of the directory is read",
			files:  map[string]string{"a.yaml": "-> /etc/hostname"}, err: "escapes",
		},
		"LinkToParent": {
			reason: "no file outside of the directory is read by a relative path",
			files:  map[string]string{"a.yaml": "-> ../../../../etc/hostname"}, err: "escapes",
		},
		"LinkToDirectory": {
			reason: "manifests behind a link would be lost",
			files:  map[string]string{"a.yaml": "a", "x/b.yaml": "b", "y": "-> x"}, err: `"y" is a link to a directory`,
		},
		"NotRegular": {
			reason: "a directory is no manifest",
			files:  map[string]string{"a.yaml": "a", "b.yaml/c.txt": "c", "d.yaml": "-> b.yaml"}, err: "not a regular file",
		},
		"TooManyEntries":   {reason: "10 000 files", files: many(10_000, ".txt"), err: "more than 1000 entries"},
		"TooManyManifests": {reason: "the manifests are counted, too", files: many(201, ".yaml"), err: "more than 200 manifests"},
		"TooDeep":          {reason: "the depth is bounded", files: map[string]string{"1/2/3/4/a.yaml": "a"}, err: "more than 4 levels deep"},
		"TooLarge": {
			reason: "the error names the file", files: map[string]string{"big.yaml": strings.Repeat("#", 1<<20+1)},
			err: `"big.yaml" has more than 1048576 bytes`,
		},
		"TooMuch": {
			reason: "the total is bounded",
			files: func() map[string]string {
				files := map[string]string{}
				for i := range 5 {
					files[fmt.Sprintf("%d.yaml", i)] = strings.Repeat("#", 1<<20)
				}
				return files
			}(), err: "more than 4194304 bytes in total",
		},
		"Empty": {
			reason: "a directory without a manifest is an error, never ignored", files: map[string]string{"a.txt": "a"},
			err: "no file is a manifest",
		},
	} {
		t.Run(name, func(t *testing.T) {
			directory := newDirectory(t, tc.files)
			got, err := site.Directory(directory)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("%s: %v, want an error with %q", tc.reason, err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, slices.Sorted(maps.Keys(got.Files))); diff != "" || got.Name != directory || got.IsImage() {
				t.Errorf("%s: %q, (-want, +got):\n%s", tc.reason, got.Name, diff)
			}
		})
	}
	for name, path := range map[string]string{
		"Missing": filepath.Join(t.TempDir(), "missing"),
		"File":    filepath.Join(newDirectory(t, map[string]string{"a.yaml": "a"}), "a.yaml"),
	} {
		if _, err := site.Directory(path); err == nil {
			t.Errorf("%s: want an error for what is not a directory", name)
		}
	}
}

func directoryOf(t *testing.T, files map[string]string) site.Source {
	t.Helper()
	source, err := site.Directory(newDirectory(t, files))
	if err != nil {
		t.Fatal(err)
	}
	return source
}

const pullSpec = "registry.example.com/checks@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func TestID(t *testing.T) {
	base := directoryOf(t, map[string]string{"a.yaml": "a", "b.yaml": "b"})
	for name, tc := range map[string]struct {
		reason string
		files  map[string]string
		same   bool
	}{
		"Same": {
			reason: "the name of the directory does not count", files: map[string]string{"a.yaml": "a", "b.yaml": "b", "README": "x"},
			same: true,
		},
		"Content": {reason: "other content is another check", files: map[string]string{"a.yaml": "a", "b.yaml": "c"}},
		"Name": {
			reason: "the names of files are in messages and in the order of the checks",
			files:  map[string]string{"a.yaml": "a", "c.yaml": "b"},
		},
		"Split": {reason: "names and contents cannot be exchanged", files: map[string]string{"a.yaml": "a6 b.yaml 1 b", "b.yaml": ""}},
	} {
		if got := directoryOf(t, tc.files).ID(); (got == base.ID()) != tc.same {
			t.Errorf("%s (%s): %s and %s", name, tc.reason, got, base.ID())
		}
	}
	image, err := site.Image(pullSpec)
	if err != nil || image.ID() != pullSpec || !image.IsImage() {
		t.Errorf("an image is its pull spec: %+v, %v", image, err)
	}
	forward, backward := []site.Source{base, image, base}, []site.Source{image, base}
	if diff := cmp.Diff(site.IDs(forward), site.IDs(backward)); diff != "" {
		t.Errorf("the order of the request and repetitions do not count: %s", diff)
	}
	if diff := cmp.Diff(site.Canonical(forward), site.Canonical(backward)); diff != "" {
		t.Errorf("the order of the checks does not depend on that of the request: %s", diff)
	}
}

func TestImage(t *testing.T) {
	for name, tc := range map[string]struct{ reason, pullSpec string }{
		"Tag":     {"a tag is moved", "registry.example.com/checks:v1"},
		"Both":    {"a tag beside the digest has no meaning", "registry.example.com/checks:v1@" + strings.SplitN(pullSpec, "@", 2)[1]},
		"Short":   {"an invalid digest", "registry.example.com/checks@sha256:abc"},
		"NoPlace": {"a name without a registry", "checks"},
		"Text":    {"any text", "Not A Pull Spec"},
	} {
		if got, err := site.Image(tc.pullSpec); err == nil || !strings.Contains(err.Error(), tc.pullSpec) {
			t.Errorf("%s (%s): %+v, %v; want an error with the pull spec", name, tc.reason, got, err)
		}
	}
}
