package site_test

import (
	"fmt"
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
		"One": {reason: "the names start with Site", files: map[string]string{"backup.yaml": job("backup-done", pullSpec)}, checks: []string{"Site.BackupDone"}},
		"Tag": {
			reason: "images are digests", files: map[string]string{"a.yaml": job("a", "registry.example.com/checks:v1")},
			inconclusive: []string{"Unknown Site.A RefusedImage"},
		},
		"Privileged": {
			reason: "the policy is that for releases", files: map[string]string{"a.yaml": job("a", pullSpec, hostNetwork), "b.yaml": job("b", pullSpec)},
			checks: []string{"Site.B"}, inconclusive: []string{"Unknown Site.A RefusedPodSecurity"},
		},
		"NoNamespace": {
			reason: "no namespace is assumed", files: map[string]string{"a.yaml": strings.Replace(job("a", pullSpec), "  namespace: site-checks\n", "", 1), "b.yaml": job("b", pullSpec)},
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
			reason: "a check that cannot be read never disappears", files: map[string]string{"a.yaml": job("a", pullSpec), "b.yaml": "openshift.io/preflight-check: ["},
			checks: []string{"Site.A"}, inconclusive: []string{"Unknown SiteManifest.B BrokenPreflight"},
		},
		"NotAnnotated": {
			reason: "a Job without the annotation is reported", files: map[string]string{"a.yaml": job("a", pullSpec), "b.yaml": "{apiVersion: batch/v1, kind: Job, metadata: {name: b}}"},
			checks: []string{"Site.A"}, inconclusive: []string{"Warn SiteChecks SiteManifestUnused"},
		},
		"None": {
			reason: "a directory without a check is inconclusive", files: map[string]string{"a.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}"},
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
	if len(draft.Checks) != 1 || len(draft.Refused) != 1 || !strings.Contains(draft.Refused[0].Message, "one/a.yaml") || !strings.Contains(draft.Refused[0].Message, "two/a.yaml") {
		t.Errorf("want one check, and a finding with both files: %+v", draft)
	}
}
