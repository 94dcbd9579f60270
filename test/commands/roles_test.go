package commands_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/recordstore"
	"github.com/openshift/update-preflight/test/exit"
	"github.com/openshift/update-preflight/test/kubelet"
	"github.com/openshift/update-preflight/test/program"
	"github.com/openshift/update-preflight/test/records"
	"github.com/openshift/update-preflight/test/zoo"
)

// everyKind has an object of each kind that a release may have beside a check: the ServiceAccount of the candidate, its
// roles, whose rules each user with the roles of a run has, and a binding of a role of the cluster.
func everyKind() string {
	documents := []string{
		`{apiVersion: v1, kind: ServiceAccount, metadata: {name: candidate, namespace: CAGE ANNOTATED}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: CAGE ANNOTATED}}`,
		`{apiVersion: RBAC, kind: Role, metadata: {name: lists, namespace: CAGE ANNOTATED}, rules: [{apiGroups: [""], resources: [pods], verbs: [list]}]}`,
		`{apiVersion: RBAC, kind: ClusterRole, metadata: {name: lists ANNOTATED}, rules: [{apiGroups: [""], resources: [pods], verbs: [list]}]}`,
		`{apiVersion: RBAC, kind: RoleBinding, metadata: {name: lists, namespace: CAGE ANNOTATED}, roleRef: {kind: Role, name: lists GROUP}, SUBJECTS}`,
		`{apiVersion: RBAC, kind: RoleBinding, metadata: {name: viewer, namespace: CAGE ANNOTATED}, roleRef: {kind: ClusterRole, name: view GROUP}, SUBJECTS}`,
		`{apiVersion: RBAC, kind: RoleBinding, metadata: {name: reader, namespace: CAGE ANNOTATED}, roleRef: {kind: ClusterRole, name: cluster-reader GROUP}, SUBJECTS}`,
		`{apiVersion: RBAC, kind: ClusterRoleBinding, metadata: {name: lists ANNOTATED}, roleRef: {kind: ClusterRole, name: lists GROUP}, SUBJECTS}`,
	}
	return strings.NewReplacer(
		" ANNOTATED", zoo.Annotated, "RBAC", "rbac.authorization.k8s.io/v1", " GROUP", ", apiGroup: rbac.authorization.k8s.io",
		"SUBJECTS", "subjects: [{kind: ServiceAccount, name: candidate, namespace: CAGE}]",
	).Replace(strings.Join(documents, "\n---\n")) + "\n"
}

// healthy is a release with one check.
func healthy() map[string]animal { return map[string]animal{"healthy": {Plain: true}} }

// candidate is a release whose check has an account with these roles.
func candidate(beside string) map[string]animal {
	return map[string]animal{"candidate": {Plain: true, Change: zoo.AsCandidate, Beside: beside}}
}

// withEveryKind is a check that uses the objects of everyKind.
func withEveryKind() animal {
	return animal{Plain: true, Beside: everyKind(), Change: func(job *batchv1.Job) {
		zoo.AsCandidate(job)
		pod := &job.Spec.Template.Spec
		pod.Containers[0].EnvFrom = append(pod.Containers[0].EnvFrom, corev1.EnvFromSource{
			ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}},
		})
	}}
}

// gate and formerGate are the names of admin gates of another version than that of the cluster. The second is where
// the first version of the enhancement had them.
const gate, formerGate = "ack-4.18-zoo", "ack-4.18-former"

// underRoles is a command that is called as a user with the roles that "auth" prints for it, and no others.
type underRoles struct {
	reason string
	// auth are the arguments of "auth".
	auth []string
	// use makes, in one call or several, each request that the roles allow but for those of unused.
	use func(t *testing.T, start starter)
	// unused are the rules that no request of these calls needs, with what does, and undeclared the requests that
	// no rule allows, with why that makes no difference.
	unused, undeclared map[string]string
}

// starter starts the program as the user.
type starter func(args ...string) *program.Execution

// once is a command that makes its requests in one call.
func once(code int, args ...string) func(*testing.T, starter) {
	return func(t *testing.T, start starter) {
		t.Helper()
		expectCode(t, start(args...), code)
	}
}

func expectCode(t *testing.T, e *program.Execution, code int) {
	t.Helper()
	if got := e.Wait(); got.Code != code {
		t.Fatalf("exit code %d under the roles, want %d\n%s%s", got.Code, code, got.Stderr, got.Stdout)
	}
}

// commandsUnderRoles are the commands, on a cluster that offers a release.
func commandsUnderRoles(t *testing.T, pullSpec string) map[string]underRoles {
	t.Helper()
	return map[string]underRoles{
		"run": {
			reason: "a run that copies accounts, roles and bindings", auth: []string{"run", "--to", to},
			use: joined(exit.Ready), unused: runsWithout(), undeclared: unlisted(),
		},
		"pull": {
			reason: "a run whose images are pulled by nodes, of which there are none", auth: []string{"run", "--to", to, "--images", "pull"},
			use: joined(exit.Undecided, "--images", "pull"), unused: pullsWithout(), undeclared: unlisted(),
		},
		"checks": {reason: "the list of checks", auth: []string{"checks"}, use: once(exit.Ready, "checks", "--to", to)},
		"verify": {
			reason: "the signature alone", auth: []string{"verify"}, use: once(exit.Ready, "verify", pullSpec),
			unused: verifiesWithout(),
		},
		"targets": {
			reason: "the updates without their releases", auth: []string{"targets"}, use: once(exit.Ready, "targets"),
			unused: targetsWithout(),
		},
		"drain-plan": {reason: "the drains", auth: []string{"drain-plan"}, use: once(exit.Ready, "drain-plan")},
		"collect": {
			reason: "archives with the records of runs, and without names", auth: []string{"collect"}, use: collectUnderRoles,
			unused: collectsWithout(),
		},
		"ack": {reason: "acknowledgements in a new ConfigMap and in one that exists", auth: []string{"ack"}, use: ackUnderRoles},
		"conformance": {
			reason: "the trials of a check that passes without an API server", auth: []string{"conformance"},
			use: conformanceUnderRoles, unused: conformsWithout(),
		},
		"cleanup": {
			reason: "the objects of all runs", auth: []string{"cleanup"}, use: cleanupUnderRoles,
			undeclared: map[string]string{"get secrets preflight-record-key in openshift-cluster-version": "the objects of a run are " +
				"deleted whether its record is authentic or not"},
		},
		"cancel": {reason: "the end of a run that no process holds", auth: []string{"cancel"}, use: cancelUnderRoles},
	}
}

// joined starts a run that another one joins, and continues when the first is detached from.
func joined(code int, args ...string) func(*testing.T, starter) {
	args = append([]string{"run", "--to", to, "--rerun", "--accept", withoutNodes}, args...)
	return func(t *testing.T, start starter) {
		t.Helper()
		deleteKey(t)
		node := newKubelet(t, 0)
		first := start(append(slices.Clone(args), "--on-interrupt", "detach")...)
		firstPod(t, node, first)
		second := start(args...)
		second.AwaitStderr("waiting for its result")
		first.Interrupt()
		expectCode(t, first, exit.Interrupted)
		node.End()
		expectCode(t, second, code)
	}
}

// withoutNodes are the findings about a cluster whose API server has no nodes and whose monitoring does not listen.
const withoutNodes = "Alerts,NodeHealth"

// deleteKey deletes the key of the records, which the next run creates.
func deleteKey(t *testing.T) {
	t.Helper()
	secrets := testCluster.Client(t).CoreV1().Secrets(record.Namespace)
	if err := secrets.Delete(t.Context(), recordstore.KeySecret, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
}

func collectUnderRoles(t *testing.T, start starter) {
	t.Helper()
	expectCode(t, start("collect", "-o", filepath.Join(t.TempDir(), "archive.tar.gz")), exit.Ready)
	expectCode(t, start("collect", "--redact", "-o", filepath.Join(t.TempDir(), "archive.tar.gz")), exit.Ready)
}

func ackUnderRoles(t *testing.T, start starter) {
	t.Helper()
	for _, namespace := range []string{"openshift-config", "openshift-cluster-version"} {
		configMaps := testCluster.Client(t).CoreV1().ConfigMaps(namespace)
		if err := configMaps.Delete(t.Context(), "admin-acks", metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
	}
	for _, each := range []string{gate, gate, formerGate, formerGate} {
		expectCode(t, start("ack", each), exit.Ready)
	}
}

func conformanceUnderRoles(t *testing.T, start starter) {
	t.Helper()
	manifest := testCluster.Manifest(t, zoo.Candidate{Animal: withEveryKind()})
	kubelet.Start(t, testCluster.Client(t), zoo.NamespaceOf(t), 0).End()
	expectCode(t, start(append([]string{"conformance"}, manifest...)...), exit.Blocked)
}

func cleanupUnderRoles(t *testing.T, startAs starter) {
	t.Helper()
	id := detachedRun(t)
	expectCode(t, startAs("cleanup", "--all"), exit.Ready)
	if got := call(t, "cancel", id); got.Code != exit.Ready {
		t.Fatalf("cancel: exit code %d\n%s", got.Code, got.Stderr)
	}
}

func cancelUnderRoles(t *testing.T, startAs starter) {
	t.Helper()
	expectCode(t, startAs("cancel", detachedRun(t)), exit.Ready)
}

// detachedRun starts a run that no process holds, and returns its ID.
func detachedRun(t *testing.T) string {
	t.Helper()
	node := newKubelet(t, 0)
	run := start(t, "run", "--to", to, "-o", "json", "--on-interrupt", "detach")
	firstPod(t, node, run)
	run.Interrupt()
	return reportOf(t, run.Wait()).Run.ID
}

// recordsUnderRoles are the commands that read recorded runs.
func recordsUnderRoles(w world) map[string]underRoles {
	passed := records.Report(records.Passed("Etcd.Quorum"))
	return map[string]underRoles{
		"status": {
			reason: "the verdict of a run, and one that has not ended", auth: []string{"status"}, unused: statusWithout(),
			use: func(t *testing.T, start starter) {
				t.Helper()
				expectCode(t, start("status", w.Completed('1', passed, w.Fingerprint())), exit.Ready)
				held := w.Begin('2', "Etcd.Quorum", "Etcd.Space")
				watching := start("status", held.Record().ID, "--watch", "--interval", "1h", "-o", "json")
				watching.AwaitStdout(`"reported": 0`)
				held.Put(records.Result("Etcd.Quorum", records.Passed("Etcd.Quorum")))
				if err := held.Detach(t.Context()); err != nil {
					t.Fatal(err)
				}
				watching.AwaitStdout(`"reported": 1`)
				watching.Interrupt()
				expectCode(t, watching, exit.Ready)
			},
		},
		"history": {reason: "the runs, and those that begin", auth: []string{"history"}, use: func(t *testing.T, start starter) {
			t.Helper()
			w.Completed('1', passed, w.Fingerprint())
			watching := start("history", "--watch", "-o", "name")
			watching.AwaitStdout("preflight/")
			watching.AwaitStdout("preflight/" + w.Detached('2', []string{"Etcd.Quorum"}))
			watching.Interrupt()
			expectCode(t, watching, exit.Ready)
		}},
		"diff": {reason: "the newest runs, and one that has not ended", auth: []string{"diff"}, use: func(t *testing.T, start starter) {
			t.Helper()
			id := w.Completed('1', passed, nil)
			w.Completed('1', passed, nil)
			expectCode(t, start("diff"), exit.Ready)
			expectCode(t, start("diff", id, w.Detached('2', []string{"Etcd.Quorum"})), exit.Failed)
		}},
		"logs": {reason: "the output of a check of the newest run until it ends", auth: []string{"logs"}, use: func(t *testing.T, start starter) {
			t.Helper()
			k, id := w.serveLogs(), w.Detached('1', []string{"Etcd.Quorum"})
			job := w.StartJob(id, "Etcd.Quorum")
			k.logs["one/check"] = "members: 3\n"
			pod := k.pod(job, "one", map[string]corev1.ContainerStatus{"check": running()})
			following := start("logs", "Etcd.Quorum", "--follow")
			following.AwaitStdout("members: 3")
			k.setStates(pod, map[string]corev1.ContainerStatus{"check": terminated()})
			close(k.ended)
			w.complete(job)
			expectCode(t, following, exit.Ready)
			expectCode(t, start("logs", id, "Etcd.Quorum"), exit.Ready)
		}},
	}
}

// Every command works for a user with the roles that "auth" prints for it. Each of their rules allows one
// of its requests, and each of its requests is allowed by one of them.
func TestCommandsUnderTheirRoles(t *testing.T) {
	w := newOpenShift(t)
	for name, tc := range commandsUnderRoles(t, w.PullSpec) {
		t.Run(name, tc.run)
	}
}

// The same of the commands about recorded runs.
func TestRecordsUnderTheirRoles(t *testing.T) {
	for name := range recordsUnderRoles(world{}) {
		t.Run(name, func(t *testing.T) { recordsUnderRoles(newWorld(t))[name].run(t) })
	}
}

func (u underRoles) run(t *testing.T) {
	t.Helper()
	roles := auth(t, u.auth...)
	user, r := roles.user(t), newRecorder(t, byDefault.Config)
	kubeconfig := r.kubeconfig(t)
	u.use(t, func(args ...string) *program.Execution {
		return program.Start(t, append(slices.Clone(args), "--as", user, "--kubeconfig", kubeconfig)...)
	})
	u.expectExact(t, roles, r.all())
}

// A command whose user lacks a permission names it, with the command that prints the roles, and has changed
// nothing.
func TestMissingPermissions(t *testing.T) {
	newOpenShift(t)
	for name, tc := range map[string]struct {
		reason     string
		auth, args []string
		resource   string
		want       []string
	}{
		"run": {
			reason: "the checks could not be run", auth: []string{"run", "--to", to}, args: []string{"run", "--to", to}, resource: "jobs",
			want: []string{"oc preflight auth run --to " + to, "create jobs.batch in namespace " + zooNamespace},
		},
		"ack": {
			reason: "an acknowledgement is written", auth: []string{"ack"}, args: []string{"ack", gate}, resource: "configmaps",
			want: []string{"oc preflight auth ack", "patch configmaps admin-acks in namespace openshift-config"},
		},
		"cleanup": {
			reason: "an object could not be deleted", auth: []string{"cleanup"}, args: []string{"cleanup", "--all"}, resource: "pods",
			want: []string{"oc preflight auth cleanup", "delete pods"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			roles := auth(t, tc.auth...)
			missing := slices.DeleteFunc(roles.rules(), func(r rule) bool { return !r.writes() || !slices.Contains(r.Resources, tc.resource) })
			r := newRecorder(t, byDefault.Config)
			got := program.Call(t, append(slices.Clone(tc.args), "--as", roles.user(t, missing...), "--kubeconfig", r.kubeconfig(t))...)
			message := errorLine(got.Stderr)
			for _, want := range tc.want {
				if got.Code != exit.Failed || !strings.Contains(message, want) {
					t.Errorf("%s: exit code %d, %q; want %d and %q", tc.reason, got.Code, message, exit.Failed, want)
				}
			}
			for _, each := range r.all() {
				if !each.anyUser() && !slices.Contains([]string{"get", "list", "watch"}, each.Verb) {
					t.Errorf("%s: %s before the error", tc.reason, each)
				}
			}
		})
	}
}

// The commands about recorded runs say the same to a user who may not read records.
func TestRecordsOfAStranger(t *testing.T) {
	byDefault.use(t)
	for command, args := range map[string][]string{
		"status": nil, "history": nil, "diff": nil, "logs": {"Etcd.Quorum"}, "cancel": {"00000000"},
	} {
		got := call(t, append([]string{command, "--as", "stranger"}, args...)...)
		want := "error: have an administrator of the cluster " + byDefault.Config.Host + " apply the roles that this prints: oc preflight auth " +
			command + " --bind user:stranger; the user lacks "
		if got.Code != exit.Failed || !strings.HasPrefix(errorLine(got.Stderr), want) {
			t.Errorf("%s: exit code %d, %q; want %d and %q", command, got.Code, got.Stderr, exit.Failed, want)
		}
	}
}

// newOpenShift makes the API server that of an OpenShift cluster, which offers a release whose check has an account.
func newOpenShift(t *testing.T) *zoo.World {
	t.Helper()
	byDefault.use(t)
	w := publish(t, map[string]animal{"candidate": withEveryKind()})
	w.State.Gates = map[string]string{gate: "Feed all animals."}
	w.State.Topology, w.State.Operators = configv1.HighlyAvailableTopologyMode, []configv1.ClusterOperator{operator("etcd")}
	w.Apply(t)
	e := &environment{t: t, plane: &byDefault, config: byDefault.Config}
	e.network("OVNKubernetes")
	e.create(`
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: thanos-querier, namespace: openshift-monitoring}
spec: {host: 127.0.0.1, to: {kind: Service, name: thanos-querier, weight: 100}}
`, `{apiVersion: v1, kind: ConfigMap, metadata: {name: admin-gates, namespace: openshift-cluster-version}, data: {`+formerGate+
		`: Feed all animals.}}
`, `{apiVersion: v1, kind: ConfigMap, metadata: {name: admin-acks, namespace: openshift-cluster-version}}
`, `{apiVersion: config.openshift.io/v1, kind: Image, metadata: {name: cluster}, spec: {additionalTrustedCA: {name: registries}}}
`, `{apiVersion: v1, kind: ConfigMap, metadata: {name: registries, namespace: openshift-config}}
`, `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: readers, namespace: `+zooNamespace+`}
rules: [{apiGroups: [""], resources: [pods], verbs: [list]}]
`, `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: readers, namespace: `+zooNamespace+`}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: readers}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:serviceaccounts:`+zooNamespace+`"}]
`)
	return w
}

// expectExact expects that the roles allow these requests, and no others.
func (u underRoles) expectExact(t *testing.T, roles printed, requests []recorded) {
	t.Helper()
	undeclared, unused := map[string]bool{}, map[string]bool{}
	for _, each := range requests {
		if !each.anyUser() && !slices.ContainsFunc(roles.rules(), func(r rule) bool { return r.allows(each) }) {
			undeclared[each.String()] = true
		}
	}
	for _, each := range roles.atoms() {
		if !slices.ContainsFunc(requests, func(r recorded) bool { return each.allows(r) || each.grants(r) }) {
			unused[each.String()] = true
		}
	}
	expectKeys(t, "no rule allows", undeclared, u.undeclared)
	expectKeys(t, "no request needs", unused, u.unused)
}

// expectKeys expects the keys of a map of reasons.
func expectKeys(t *testing.T, what string, got map[string]bool, want map[string]string) {
	t.Helper()
	for key := range got {
		if want[key] == "" {
			t.Errorf("%s %q", what, key)
		}
	}
	for key, reason := range want {
		if !got[key] {
			t.Errorf("it is said that %s %q: %s", what, key, reason)
		}
	}
}

// as calls the program as a user.
func as(t *testing.T, user string, args []string) program.Result {
	t.Helper()
	return call(t, append(slices.Clone(args), "--as", user)...)
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
	if got.Code != exit.Failed || !strings.Contains(message, "attempting to grant RBAC permissions not currently held") ||
		!strings.Contains(message, `Resources:["limitranges"]`) {
		t.Errorf("exit code %d, %q; want %d and the permissions that the user does not have and therefore cannot grant", got.Code, message,
			exit.Failed)
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
	result := runPreflight(t, exit.Ready, "--to", to, "--accept", "AdmissionPolicies,Drain,ReadOnlyAccess", "--as", roles.user(t, optional...))
	for _, name := range []string{"AdmissionPolicies", "Drain"} { // policies decide on evictions as well
		if f := byName(result)[name]; f.Outcome != preflight.Unknown || f.Reason != "Forbidden" {
			t.Errorf("%s: %+v; want Unknown (Forbidden)", name, f)
		}
	}
	if f := byName(result)["ReadOnlyGuard"]; f.Outcome != preflight.Warn || f.Reason != "NoReadOnlyGuard" || f.Remediation == "" {
		t.Errorf("ReadOnlyGuard: %+v; want Warn (NoReadOnlyGuard) with a remedy", f)
	}
	// Without the guard and without the audit, nothing is known to keep a check from writing.
	if f := byName(result)["ReadOnlyAccess"]; f.Outcome != preflight.Unknown || f.Reason != "NotAudited" || f.Bypass == nil {
		t.Errorf("ReadOnlyAccess: %+v; want an accepted Unknown (NotAudited)", f)
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
		"ReadOnlyAccess-" + zooNamespace + ".candidate": "is a temporary copy of ServiceAccount of the release " + zooNamespace +
			"/candidate; the roles of the release allow it to get, list configmaps",
		"ReadOnlyAccess-" + zooNamespace + ".default": "is a temporary copy of ServiceAccount " + zooNamespace +
			"/default with its read access",
		"ReadOnlyAccess-" + zooNamespace + ".auditor": "is a temporary copy of ServiceAccount " + zooNamespace +
			"/auditor with its read access, without Secrets of any name",
		"ReadOnlyAccess-" + zooNamespace: "have no write access (",
	} {
		f := findings[name]
		if f.Outcome != preflight.Pass || f.Reason != "ReadOnly" || !strings.Contains(f.Message, want) || f.Blocks {
			t.Errorf("%s: %+v; want a pass that contains %q", name, f, want)
		}
	}
	testCluster.ExpectNothingLeft(t)
}
