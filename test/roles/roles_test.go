package roles_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/test/zoo"
)

// viewer binds the ServiceAccount of the candidate to the ClusterRole view.
const viewer = `---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: viewer, namespace: CAGE` + zoo.Annotated + `},
 roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view},
 subjects: [{kind: ServiceAccount, name: candidate, namespace: CAGE}]}
`

// healthy is a release with one check.
func healthy() map[string]zoo.Animal { return map[string]zoo.Animal{"healthy": {Plain: true}} }

// candidate is a release whose check has an account with these roles.
func candidate(beside string) map[string]zoo.Animal {
	return map[string]zoo.Animal{"candidate": {Plain: true, Change: zoo.AsCandidate, Beside: beside}}
}

// Every command works for a user with the roles that "auth" prints for it. Without any
// one of their rules, it either reports the missing permission before it changes anything,
// or continues if "auth" lists the permission as optional. The rules are removed one by one:
// a check that cannot read something hides what others would read.
func TestCommandsNeedTheRolesThatAuthPrints(t *testing.T) {
	checks := candidate(zoo.Access("get, list", zoo.Annotated) + viewer)
	c := newCaller(t)
	startKubelet(t)
	first, _ := offer(t, 1, checks)
	run := c.auth(t, "run", "--to", first[0].version)
	releases, w := offer(t, len(run.rules())+1, checks)
	const gate = "ack-4.18-zoo" // of another version than that of the cluster
	w.State.Gates = map[string]string{gate: "Feed all animals."}
	w.Apply(t)
	for _, tc := range []struct {
		reason  string
		roles   printed
		command func(offered) []string
		prepare func()
	}{
		{
			reason: "a run that copies accounts, roles and bindings", roles: run,
			command: func(to offered) []string { return []string{"run", "--to", to.version} },
		},
		{
			reason: "the list of checks", roles: c.auth(t, "checks"),
			command: func(to offered) []string { return []string{"checks", "--to", to.version} },
		},
		{
			reason: "the signature alone", roles: c.auth(t, "verify"),
			command: func(to offered) []string { return []string{"verify", to.pullSpec} },
		},
		{
			reason: "an acknowledgement", roles: c.auth(t, "ack"),
			command: func(offered) []string { return []string{"ack", gate} },
		},
		{
			reason: "the objects of all runs", roles: c.auth(t, "cleanup"),
			command: func(offered) []string { return []string{"cleanup", "--all"} },
			prepare: func() {
				if got := c.call(t, "run", "--to", first[0].version, "--keep"); got.Code != ready {
					t.Fatalf("exit code %d\n%s%s", got.Code, got.Stderr, got.Stdout)
				}
			},
		},
	} {
		t.Run(tc.command(releases[0])[0], func(t *testing.T) {
			if tc.prepare != nil {
				tc.prepare()
			}
			if got := c.as(t, tc.roles.user(t), tc.command(releases[0])); got.Code != ready {
				t.Fatalf("%s: exit code %d under the roles for it\n%s%s", tc.reason, got.Code, got.Stderr, got.Stdout)
			}
			sideBySide(t, tc.roles.rules(), func(t *testing.T, i int, missing rule) {
				t.Helper()
				expectMissing(t, tc.roles, missing, c.as(t, tc.roles.user(t, missing), tc.command(releases[i+1])))
			})
			testCluster.ExpectNothingLeft(t)
		})
	}
}

// as calls the program as a user.
func (c caller) as(t *testing.T, user string, args []string) zoo.Result {
	t.Helper()
	return c.call(t, append(slices.Clone(args), "--as", user)...)
}

// expectMissing verifies the result of a command without one rule of its roles.
func expectMissing(t *testing.T, roles printed, missing rule, got zoo.Result) {
	t.Helper()
	message := errorLine(got.Stderr)
	bind := missing.Verbs[0] == "bind" && strings.Contains(message, "RBAC permissions not currently held")
	switch {
	case got.Code == ready && missing.in(roles.optional):
	case got.Code == undecided && missing.in(roles.optional) && strings.Contains(got.Stdout, "(Forbidden)"):
		// The check that reads it is inconclusive.
	case got.Code == failed && (missing.in(message) || bind):
		if strings.Contains(got.Stderr, "running the check") {
			t.Errorf("checks ran without the permission:\n%s", got.Stderr)
		}
	default:
		t.Errorf("exit code %d, %q; want the missing permission as an error, or as optional", got.Code, got.Stderr)
	}
}

// Without a release, "auth" prints the roles for every release that grants its checks no
// permissions; for others, only these permissions are missing.
func TestRolesForAnyRelease(t *testing.T) {
	c := newCaller(t)
	startKubelet(t)
	user := c.auth(t, "run").user(t)
	offer(t, 1, healthy())
	if got := c.as(t, user, []string{"run", "--to", zoo.To}); got.Code != ready {
		t.Errorf("exit code %d under the roles for any release\n%s%s", got.Code, got.Stderr, got.Stdout)
	}
	offer(t, 1, candidate(strings.ReplaceAll(zoo.Access("get, list", zoo.Annotated), "configmaps", "limitranges")))
	got := c.as(t, user, []string{"run", "--to", zoo.To})
	message := errorLine(got.Stderr)
	if got.Code != failed || !strings.Contains(message, "attempting to grant RBAC permissions not currently held") || !strings.Contains(message, `Resources:["limitranges"]`) {
		t.Errorf("exit code %d, %q; want %d and the permissions that the user does not have and therefore cannot grant", got.Code, message, failed)
	}
	testCluster.ExpectNothingLeft(t)
}

// The commands that change nodes' caches or test a manifest need further permissions, which
// they review before they change anything.
func TestFurtherPermissionsAreReviewed(t *testing.T) {
	c := newCaller(t)
	offer(t, 1, healthy())
	pull := []string{"run", "--to", zoo.To, "--images", "pull"}
	without := c.auth(t, pull[:3]...).rules()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: zoo.NamespaceOf(t)}}
	if _, err := testCluster.Client(t).CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		reason  string
		auth    []string
		command []string
		// removed selects the rules that are removed.
		removed func(rule) bool
	}{
		{
			reason: "images are pulled by Jobs on each node", auth: pull, command: pull,
			removed: func(r rule) bool {
				return !slices.ContainsFunc(without, func(other rule) bool { return other.String() == r.String() })
			},
		},
		{
			reason: "a manifest is tested in trials", auth: []string{"conformance"},
			command: append([]string{"conformance"}, testCluster.Manifest(t, zoo.Candidate{Animal: zoo.Animal{Plain: true}})...),
			// Without this one it continues, see test/e2e.
			removed: func(r rule) bool { return r.Resources[0] != "validatingadmissionpolicies" },
		},
	} {
		t.Run(tc.auth[0], func(t *testing.T) {
			roles := c.auth(t, tc.auth...)
			removed := slices.DeleteFunc(roles.rules(), func(r rule) bool { return !tc.removed(r) })
			if len(removed) == 0 {
				t.Fatalf("%s: there is no rule for it", tc.reason)
			}
			sideBySide(t, removed, func(t *testing.T, _ int, missing rule) {
				t.Helper()
				if got := c.as(t, roles.user(t, missing), tc.command); got.Code != failed {
					t.Errorf("%s: exit code %d without the permission, want %d\n%s", tc.reason, got.Code, failed, got.Stderr)
				} else {
					expectMissing(t, roles, missing, got)
				}
			})
			testCluster.ExpectNothingLeft(t)
		})
	}
}

// A run without the optional permissions continues, and reports them.
func TestRunWithoutOptionalPermissions(t *testing.T) {
	c := newCaller(t)
	startKubelet(t)
	offer(t, 1, healthy())
	roles := c.auth(t, "run", "--to", zoo.To)
	optional := slices.DeleteFunc(roles.rules(), func(r rule) bool {
		return !slices.Contains([]string{"validatingadmissionpolicies", "subjectaccessreviews"}, r.Resources[0])
	})
	got := c.as(t, roles.user(t, optional...), []string{"run", "--to", zoo.To, "--accept", "AdmissionPolicies", "-o", "json"})
	result, err := report.Read(strings.NewReader(got.Stdout))
	if err != nil || got.Code != ready {
		t.Fatalf("exit code %d, %v\n%s%s", got.Code, err, got.Stderr, got.Stdout)
	}
	for name, want := range map[string]finding.Finding{
		"AdmissionPolicies": {Finding: preflight.Finding{Outcome: preflight.Unknown, Reason: "Forbidden"}},
		"ReadOnlyGuard":     {Finding: preflight.Finding{Outcome: preflight.Warn, Reason: "NoReadOnlyGuard"}},
		"ReadOnlyAccess":    {Finding: preflight.Finding{Outcome: preflight.Warn, Reason: "NotAudited"}},
	} {
		i := slices.IndexFunc(result.Findings, func(f finding.Finding) bool { return f.Name == name })
		if i < 0 {
			t.Errorf("no finding %s", name)
			continue
		}
		if f := result.Findings[i]; f.Outcome != want.Outcome || f.Reason != want.Reason || f.Outcome == preflight.Warn && f.Remediation == "" {
			t.Errorf("%s: %+v; want %s (%s) with a remedy", name, f, want.Outcome, want.Reason)
		}
	}
	testCluster.ExpectNothingLeft(t)
}
