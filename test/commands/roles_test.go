package commands_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/test/exit"
	"github.com/openshift/update-preflight/test/kubelet"
	"github.com/openshift/update-preflight/test/program"
	"github.com/openshift/update-preflight/test/zoo"
)

// account is the ServiceAccount of the candidate.
const account = `{apiVersion: v1, kind: ServiceAccount, metadata: {name: candidate, namespace: CAGE` + zoo.Annotated + `}}
`

// viewer binds the ServiceAccount of the candidate to the ClusterRole view.
const viewer = `---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: viewer, namespace: CAGE` + zoo.Annotated + `},
 roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view},
 subjects: [{kind: ServiceAccount, name: candidate, namespace: CAGE}]}
`

// healthy is a release with one check.
func healthy() map[string]animal { return map[string]animal{"healthy": {Plain: true}} }

// candidate is a release whose check has an account with these roles.
func candidate(beside string) map[string]animal {
	return map[string]animal{"candidate": {Plain: true, Change: zoo.AsCandidate, Beside: beside}}
}

// gate is the name of an admin gate of another version than that of the cluster.
const gate = "ack-4.18-zoo"

// roleCase is a command and the roles that "auth" prints for it.
type roleCase struct {
	reason  string
	command func(offered) []string
	// code is the exit code with all roles, and removed are the rules that are removed, one
	// by one.
	code    int
	roles   printed
	removed []rule
}

// roleCases returns the cases of the commands.
func roleCases(t *testing.T) map[string]roleCase {
	t.Helper()
	run := auth(t, "run", "--to", to)
	manifest := testCluster.Manifest(t, zoo.Candidate{Animal: animal{Plain: true, Change: zoo.AsCandidate, Beside: account + viewer}})
	cases := map[string]roleCase{
		"run": {
			reason: "a run that copies accounts, roles and bindings", roles: run,
			command: func(to offered) []string { return []string{"run", "--to", to.version} },
		},
		"pull": {
			reason: "the further permissions of a run whose images are pulled by nodes, of which there are none", code: exit.Undecided,
			roles:   auth(t, "run", "--to", to, "--images", "pull"),
			command: func(to offered) []string { return []string{"run", "--to", to.version, "--images", "pull"} },
		},
		"checks": {
			reason: "the list of checks", roles: auth(t, "checks"),
			command: func(to offered) []string { return []string{"checks", "--to", to.version} },
		},
		"verify": {
			reason: "the signature alone", roles: auth(t, "verify"),
			command: func(to offered) []string { return []string{"verify", to.pullSpec} },
		},
		"ack": {
			reason: "an acknowledgement", roles: auth(t, "ack"),
			command: func(offered) []string { return []string{"ack", gate} },
		},
		"cleanup": {
			reason: "the objects of all runs", roles: auth(t, "cleanup"),
			command: func(offered) []string { return []string{"cleanup", "--all"} },
		},
		"conformance": {
			reason: "the trials of a check that passes without an API server", code: exit.Blocked, roles: auth(t, "conformance"),
			command: func(offered) []string { return append([]string{"conformance"}, manifest...) },
		},
	}
	for name, each := range cases {
		each.removed = each.roles.rules()
		if name == "pull" {
			each.removed = slices.DeleteFunc(each.removed, func(r rule) bool { return slices.Contains(run.names(), r.String()) })
		}
		cases[name] = each
	}
	return cases
}

// Every command works for a user with the roles that "auth" prints for it. Without any
// one of their rules, it either reports the missing permission before it changes anything,
// or continues if "auth" lists the permission as optional. The rules are removed one by one:
// a check that cannot read something hides what others would read.
func TestCommandsNeedTheRolesThatAuthPrints(t *testing.T) {
	byDefault.use(t)
	newKubelet(t, 0).End()
	kubelet.Start(t, testCluster.Client(t), createNamespace(t), 0).End()
	checks := candidate(zoo.Access("get, list", zoo.Annotated) + viewer)
	publish(t, checks)
	cases := roleCases(t)
	releases, w := offer(t, len(cases["run"].removed)+1, checks)
	w.State.Gates = map[string]string{gate: "Feed all animals."}
	w.Apply(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if name == "cleanup" {
				runPreflight(t, exit.Ready, "--to", to, "--keep")
			}
			if got := as(t, tc.roles.user(t), tc.command(releases[0])); got.Code != tc.code {
				t.Fatalf("%s: exit code %d under the roles for it, want %d\n%s%s", tc.reason, got.Code, tc.code, got.Stderr, got.Stdout)
			}
			if len(tc.removed) == 0 {
				t.Fatalf("%s: there is no rule for it", tc.reason)
			}
			sideBySide(t, tc.removed, func(t *testing.T, i int, missing rule) {
				t.Helper()
				tc.expect(t, missing, as(t, tc.roles.user(t, missing), tc.command(releases[i+1])))
			})
			testCluster.ExpectNothingLeft(t)
		})
	}
}

// createNamespace creates the namespace of the candidate of a test, and returns its name.
func createNamespace(t *testing.T) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: zoo.NamespaceOf(t)}}
	if _, err := testCluster.Client(t).CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return namespace.Name
}

// as calls the program as a user.
func as(t *testing.T, user string, args []string) program.Result {
	t.Helper()
	return call(t, append(slices.Clone(args), "--as", user)...)
}

// expect verifies the result without one rule.
func (tc roleCase) expect(t *testing.T, missing rule, got program.Result) {
	t.Helper()
	message := errorLine(got.Stderr)
	bind := missing.Verbs[0] == "bind" && strings.Contains(message+got.Stdout, "RBAC permissions not currently held")
	optional := missing.in(tc.roles.optional)
	switch {
	case optional && got.Code == tc.code:
	case optional && got.Code == exit.Undecided && strings.Contains(got.Stdout, "(Forbidden)"):
		// The check that reads it is inconclusive.
	case got.Code == exit.Failed && missing.in(message), bind && (got.Code == exit.Failed || got.Code == exit.Undecided):
		if strings.Contains(got.Stderr, "running the check") {
			t.Errorf("%s: checks ran without the permission:\n%s", tc.reason, got.Stderr)
		}
	default:
		t.Errorf("%s: exit code %d, %q; want the missing permission as an error, or as optional", tc.reason, got.Code, got.Stderr)
	}
}

// Without a release, "auth" prints the roles for every release that grants its checks no
// permissions; for others, only these permissions are missing.
func TestRolesForAnyRelease(t *testing.T) {
	byDefault.use(t)
	newKubelet(t, 0).End()
	user := auth(t, "run").user(t)
	publish(t, healthy())
	if got := as(t, user, []string{"run", "--to", to}); got.Code != exit.Ready {
		t.Errorf("exit code %d under the roles for any release\n%s%s", got.Code, got.Stderr, got.Stdout)
	}
	publish(t, candidate(strings.ReplaceAll(zoo.Access("get, list", zoo.Annotated), "configmaps", "limitranges")))
	got := as(t, user, []string{"run", "--to", to})
	message := errorLine(got.Stderr)
	if got.Code != exit.Failed || !strings.Contains(message, "attempting to grant RBAC permissions not currently held") || !strings.Contains(message, `Resources:["limitranges"]`) {
		t.Errorf("exit code %d, %q; want %d and the permissions that the user does not have and therefore cannot grant", got.Code, message, exit.Failed)
	}
	testCluster.ExpectNothingLeft(t)
}

// A run without the optional permissions continues, and reports them.
func TestRunWithoutOptionalPermissions(t *testing.T) {
	byDefault.use(t)
	newKubelet(t, 0).End()
	publish(t, healthy())
	roles := auth(t, "run", "--to", to)
	optional := slices.DeleteFunc(roles.rules(), func(r rule) bool {
		return !slices.Contains([]string{"validatingadmissionpolicies", "subjectaccessreviews"}, r.Resources[0])
	})
	result := runPreflight(t, exit.Ready, "--to", to, "--accept", "AdmissionPolicies,Drain", "--as", roles.user(t, optional...))
	for _, name := range []string{"AdmissionPolicies", "Drain"} { // policies decide on evictions as well
		if f := byName(result)[name]; f.Outcome != preflight.Unknown || f.Reason != "Forbidden" {
			t.Errorf("%s: %+v; want Unknown (Forbidden)", name, f)
		}
	}
	for name, reason := range map[string]string{"ReadOnlyGuard": "NoReadOnlyGuard", "ReadOnlyAccess": "NotAudited"} {
		if f := byName(result)[name]; f.Outcome != preflight.Warn || f.Reason != reason || f.Remediation == "" {
			t.Errorf("%s: %+v; want Warn (%s) with a remedy", name, f, reason)
		}
	}
	testCluster.ExpectNothingLeft(t)
}

// The copy of an existing account has only the read access of the account. For the copy of
// an account of the release, the report lists the permissions by the roles of the release.
func TestIdentitiesAreAudited(t *testing.T) {
	byDefault.use(t)
	asAuditor := func(job *batchv1.Job) { job.Spec.Template.Spec.ServiceAccountName = "auditor" }
	publish(t, map[string]animal{
		"candidate": {Plain: true, Change: zoo.AsCandidate, Beside: zoo.Access("get, list", zoo.Annotated)},
		"writer":    {Plain: true, Change: asAuditor},
		"healthy":   {Plain: true},
	})
	e := &environment{t: t, plane: &byDefault, config: byDefault.Config}
	e.create(`{apiVersion: v1, kind: ServiceAccount, metadata: {name: auditor, namespace: `+zooNamespace+`}}`, `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: auditor, namespace: kube-public}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{kind: ServiceAccount, name: auditor, namespace: `+zooNamespace+`}]
`)
	newKubelet(t, 0).End()
	findings := byName(runPreflight(t, exit.Ready, "--to", to))
	for name, want := range map[string]string{
		"ReadOnlyAccess-" + zooNamespace + ".candidate": "is a temporary copy of ServiceAccount of the release " + zooNamespace + "/candidate; the roles of the release allow it to get, list configmaps",
		"ReadOnlyAccess-" + zooNamespace + ".default":   "is a temporary copy of ServiceAccount " + zooNamespace + "/default with its read access",
		"ReadOnlyAccess-" + zooNamespace + ".auditor":   "is a temporary copy of ServiceAccount " + zooNamespace + "/auditor with its read access, without Secrets of any name",
		"ReadOnlyAccess-" + zooNamespace:                "have no write access (",
	} {
		f := findings[name]
		if f.Outcome != preflight.Pass || f.Reason != "ReadOnly" || !strings.Contains(f.Message, want) || f.Blocks {
			t.Errorf("%s: %+v; want a pass that contains %q", name, f, want)
		}
	}
	testCluster.ExpectNothingLeft(t)
}

// parallel is how many programs run side by side. Most of the time each of them waits for
// the API server.
const parallel = 8

// sideBySide runs a test for each rule.
func sideBySide(t *testing.T, rules []rule, test func(t *testing.T, i int, each rule)) {
	t.Helper()
	free := make(chan struct{}, parallel)
	var running sync.WaitGroup
	for i, each := range rules {
		free <- struct{}{}
		running.Go(func() {
			t.Run(each.String(), func(t *testing.T) { test(t, i, each) })
			<-free
		})
	}
	running.Wait()
}

// offered is an available update.
type offered struct{ version, pullSpec string }

// offer makes the cluster offer this many releases, which differ only in their versions: a
// run joins another run of the same release.
func offer(t *testing.T, number int, animals map[string]animal) ([]offered, *zoo.World) {
	t.Helper()
	releases, all := map[string]string{}, make([]offered, number)
	for i := range all {
		version := fmt.Sprintf("5.2.%d", i)
		pullSpec, err := testCluster.Push(t.Context(), version, animals)
		if err != nil {
			t.Fatal(err)
		}
		releases[version], all[i] = pullSpec, offered{version, pullSpec}
	}
	return all, testCluster.Offer(t, releases, zooNamespace)
}
