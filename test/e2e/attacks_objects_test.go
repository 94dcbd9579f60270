package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/launch"
	"github.com/openshift/update-preflight/test/zoo"
)

// attack is an attempt of a user of the cluster to forge a result or to make a run delete
// objects of others.
type attack struct {
	name string
	// reached is the effect of the attack before runs compared objects; "nothing" if it
	// had none.
	reached string
	// run executes the attack and returns what the program reports. It fails the test if
	// the attack succeeds.
	run func(t *testing.T, client kubernetes.Interface) (reported string)
}

func TestAttacksOnObjects(t *testing.T) {
	client := testCluster.Client(t)
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "attack\treached before\treported now")
	for _, a := range []attack{
		{"Job of a planned name, before it is created", "result of the forged Job", forgedJob},
		{"Job of a planned name, before a takeover", "result of the forged Job", forgedJobBeforeTakeover},
		{"Role of the run replaced, before a takeover", "permissions of the check", forgedRoleBeforeTakeover},
		{"pod with the labels of a check", "result of the forged pod", forgedPod},
		{"label of a run on other objects, then cleanup --all", "deletion by the administrator", labeledObjects},
		{"finalizer on a Job of the run", "an error without the cause", heldJob},
		{"owner of a Job of the run deleted", "nothing", ownedJob},
		{"mutating policy that replaces the command", "result of another program", mutatedJob},
		{"required anti-affinity of a check", "nothing", antiAffinity},
	} {
		t.Run(a.name, func(t *testing.T) {
			fmt.Fprintf(w, "%s\t%s\t%s\n", a.name, a.reached, a.run(t, client))
		})
		testCluster.ExpectNothingLeft(t)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + table.String())
}

// started is a run in progress.
type started struct {
	command *exec.Cmd
	stdout  bytes.Buffer
	stderr  strings.Builder
	lines   *bufio.Scanner
	// id is the ID of the run.
	id string
}

// startRun starts a run, and returns when a line of its progress contains the text.
func startRun(t *testing.T, client kubernetes.Interface, text string, args ...string) *started {
	t.Helper()
	s := &started{command: preflightCommand(t, append([]string{"run", "--to", to, "-o", "json"}, args...)...)}
	s.command.Stdout = &s.stdout
	stderr, err := s.command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.command.Start(); err != nil {
		t.Fatal(err)
	}
	s.lines = bufio.NewScanner(stderr)
	for !strings.Contains(s.lines.Text(), text) {
		if !s.lines.Scan() {
			t.Fatalf("the run ended before %q: %v", text, s.lines.Err())
		}
	}
	jobs, err := client.BatchV1().Jobs(zooNamespace).List(t.Context(), metav1.ListOptions{LabelSelector: label.Run})
	if err != nil || len(jobs.Items) == 0 {
		t.Fatalf("the run has no Job: %v", err)
	}
	s.id = jobs.Items[0].Labels[label.Run]
	return s
}

// kill kills the run, which cannot delete its objects.
func (s *started) kill(t *testing.T) {
	t.Helper()
	if err := s.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = s.command.Wait() // it was killed
}

// report waits for the end of the run, and returns its report.
func (s *started) report(t *testing.T) report.Report {
	t.Helper()
	for s.lines.Scan() {
		s.stderr.WriteString(s.lines.Text() + "\n")
	}
	_ = s.command.Wait() // the report has the decision
	var result report.Report
	if err := json.Unmarshal(s.stdout.Bytes(), &result); err != nil {
		t.Fatalf("%v\n%s", err, s.stderr.String())
	}
	return result
}

// expectUndecided expects the verdict Undecided with a finding of this reason, and returns
// both as text.
func expectUndecided(t *testing.T, result report.Report, reason finding.Reason) string {
	t.Helper()
	var texts []string
	for _, f := range result.Findings {
		if f.Source == finding.SourceJob {
			texts = append(texts, fmt.Sprintf("%s %s(%s): %s", f.Name, f.Outcome, f.Reason, f.Message))
		}
		if f.Reason == string(reason) && f.Outcome == preflight.Unknown && result.Verdict.Decision == "Undecided" {
			return fmt.Sprintf("%s, %s(%s)", result.Verdict.Decision, f.Outcome, f.Reason)
		}
	}
	t.Errorf("%s; want Undecided with %s:\n%s", result.Verdict.Decision, reason, strings.Join(texts, "\n"))
	return "another result"
}

// twoChecks returns a slow check and a second one that fails.
func twoChecks() map[string]animal {
	return map[string]animal{"first": {Ending: "slow"}, "second": {Ending: "fail", Plain: true}}
}

// forgeSecond creates a Job that passes, with the name of the Job of the second check.
func forgeSecond(t *testing.T, client kubernetes.Interface, id string) {
	t.Helper()
	jobs := client.BatchV1().Jobs(zooNamespace)
	suffix := "-" + label.Suffix(id)
	first, err := jobs.Get(t.Context(), "first"+suffix, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	forged := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "second" + suffix, Labels: map[string]string{"attack": "", label.Run: id}, Annotations: first.Annotations},
		Spec:       batchv1.JobSpec{Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"attack": "", label.Run: id}}, Spec: first.Spec.Template.Spec}},
	}
	forged.Spec.Template.Spec.Containers[0].Command = []string{"/bin/preflight", "plain-pass"}
	if _, err := jobs.Create(t.Context(), forged, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func forgedJob(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	publish(t, twoChecks())
	run := startRun(t, client, "Zoo.First: running", "--parallelism", "1")
	forgeSecond(t, client, run.id)
	reported := expectUndecided(t, run.report(t), launch.ReasonForeignObject)
	if want := "Job " + zooNamespace + "/second-" + label.Suffix(run.id) + " has the label"; !strings.Contains(run.stderr.String(), want) {
		t.Errorf("the forged Job is not listed as foreign:\n%s", run.stderr.String())
	}
	if _, err := client.BatchV1().Jobs(zooNamespace).Get(t.Context(), "second-"+label.Suffix(run.id), metav1.GetOptions{}); err != nil {
		t.Errorf("the forged Job was deleted: %v", err)
	}
	testCluster.Kubectl(t, "delete", "jobs,pods", "-n", zooNamespace, "-l", "attack")
	return reported
}

func forgedJobBeforeTakeover(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	publish(t, twoChecks())
	killed := startRun(t, client, "Zoo.First: running", "--parallelism", "1")
	killed.kill(t)
	forgeSecond(t, client, killed.id)
	result := startRun(t, client, "continuing run "+killed.id).report(t)
	reported := expectUndecided(t, result, launch.ReasonForeignObject)
	testCluster.Kubectl(t, "delete", "jobs,pods", "-n", zooNamespace, "-l", "attack")
	return reported
}

func forgedRoleBeforeTakeover(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	publish(t, map[string]animal{"first": {Ending: "slow", Change: zoo.AsCandidate, Beside: zoo.Access("get", zoo.Annotated)}})
	killed := startRun(t, client, "Zoo.First: running")
	killed.kill(t)
	roles := client.RbacV1().Roles(zooNamespace)
	role, err := roles.Get(t.Context(), "candidate-"+label.Suffix(killed.id), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	role.Rules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list"}}}
	if _, err := roles.Update(t.Context(), role, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	reported := expectUndecided(t, startRun(t, client, "continuing run "+killed.id).report(t), launch.ReasonForeignObject)
	testCluster.Kubectl(t, "delete", "role", role.Name, "-n", zooNamespace)
	return reported
}

// forgedPod creates a pod that reports a pass for a check that is still running.
func forgedPod(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	publish(t, map[string]animal{"first": {Ending: "sleep"}})
	run := startRun(t, client, "Zoo.First: running", "--timeout", "40s")
	job, err := client.BatchV1().Jobs(zooNamespace).Get(t.Context(), "first-"+label.Suffix(run.id), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	forged := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "forged", Labels: map[string]string{"attack": "", label.Run: run.id, batchv1.JobNameLabel: job.Name}},
		Spec:       job.Spec.Template.Spec,
	}
	forged.Spec.Containers[0].Command = []string{"/bin/preflight", "pass"}
	if _, err := client.CoreV1().Pods(zooNamespace).Create(t.Context(), forged, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	result := run.report(t)
	if f := byName(result)["Zoo.Animal"]; f.Outcome == preflight.Pass || result.Verdict.Decision != "Undecided" {
		t.Errorf("%s, %+v; want Undecided, and no pass by the forged pod", result.Verdict.Decision, f)
	}
	testCluster.Kubectl(t, "delete", "pod", "forged", "-n", zooNamespace)
	return string(result.Verdict.Decision) + ", the check is still running"
}

func labeledObjects(t *testing.T, _ kubernetes.Interface) string {
	t.Helper()
	publish(t, map[string]animal{"first": {Ending: "pass"}})
	result := runPreflight(t, 0, "--to", to, "--keep")
	labeled := label.Run + "=" + result.Run.ID
	testCluster.Kubectl(t, "create", "configmap", "production", "-n", zooNamespace)
	testCluster.Kubectl(t, "create", "job", "production", "-n", zooNamespace, "--image", zooImage)
	testCluster.Kubectl(t, "create", "clusterrole", "production", "--verb=get", "--resource=pods")
	testCluster.Kubectl(t, "label", "configmap/production", "job/production", "-n", zooNamespace, labeled, "attack=")
	testCluster.Kubectl(t, "label", "clusterrole/production", labeled)
	got := call(t, "cleanup", "--all")
	if got.Code != 1 || strings.Count(got.Stderr, "is not of the run; remove the label with: oc ") != 3 || !strings.Contains(got.Stdout, "deleted Job "+zooNamespace+"/first-") {
		t.Errorf("exit code %d, want 1 and three objects that are not of the run:\n%s%s", got.Code, got.Stdout, got.Stderr)
	}
	testCluster.Kubectl(t, "get", "configmap/production", "job/production", "-n", zooNamespace)
	testCluster.Kubectl(t, "delete", "clusterrole", "production")
	testCluster.Kubectl(t, "delete", "configmap/production", "job/production", "-n", zooNamespace)
	return "exit code 1, the objects with the command that removes the label"
}

// heldJob adds a finalizer to a Job of the run.
func heldJob(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	publish(t, map[string]animal{"first": {Ending: "pass"}})
	result := runPreflight(t, 0, "--to", to, "--keep")
	name := "first-" + label.Suffix(result.Run.ID)
	testCluster.Kubectl(t, "patch", "job", name, "-n", zooNamespace, "--type=merge", "-p", `{"metadata":{"finalizers":["example.com/held"]}}`)
	objects, err := metadata.NewForConfig(local.Config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, err = launch.New(client, objects).Cleanup(ctx, result.Run.ID)
	if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "example.com/held") {
		t.Errorf("error %v; want the name of the Job and its finalizer", err)
	}
	testCluster.Kubectl(t, "patch", "job", name, "-n", zooNamespace, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	if got := call(t, "cleanup", result.Run.ID); got.Code != 0 {
		t.Errorf("exit code %d of the next clean-up: %s", got.Code, got.Stderr)
	}
	return "the Job and its finalizer, within the time limit"
}

// ownedJob makes the garbage collector delete a Job of the run.
func ownedJob(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	publish(t, map[string]animal{"first": {Ending: "sleep"}})
	run := startRun(t, client, "Zoo.First: running")
	name := "first-" + label.Suffix(run.id)
	for range 2 { // the run creates the Job again after the first deletion
		job := awaitJob(t, client, name)
		testCluster.Kubectl(t, "patch", "job", name, "-n", zooNamespace, "--type=merge", "-p",
			`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"absent","uid":"`+string(job.UID)+`"}]}}`)
		awaitDeletion(t, client, job)
	}
	return expectUndecided(t, run.report(t), "JobDeleted")
}

// awaitJob waits until the Job exists and is not being deleted, and returns it.
func awaitJob(t *testing.T, client kubernetes.Interface, name string) *batchv1.Job {
	t.Helper()
	watching, err := client.BatchV1().Jobs(zooNamespace).Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		t.Fatal(err)
	}
	defer watching.Stop()
	for event := range watching.ResultChan() {
		if job, ok := event.Object.(*batchv1.Job); ok && job.DeletionTimestamp == nil && event.Type != "DELETED" {
			return job
		}
	}
	t.Fatal("the Job does not exist")
	return nil
}

// awaitDeletion returns when the Job was deleted.
func awaitDeletion(t *testing.T, client kubernetes.Interface, job *batchv1.Job) {
	t.Helper()
	watching, err := client.BatchV1().Jobs(zooNamespace).Watch(t.Context(), metav1.ListOptions{
		FieldSelector: "metadata.name=" + job.Name, ResourceVersion: job.ResourceVersion,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer watching.Stop()
	for event := range watching.ResultChan() {
		if event.Type == "DELETED" {
			return
		}
	}
	t.Fatal("the Job still exists")
}

// mutatedJob creates an admission policy that replaces the program of the check.
func mutatedJob(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	publish(t, map[string]animal{"first": {Ending: "fail", Plain: true}})
	probe := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "probe"}, Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: probeSpec()}}}
	defer mutate(t, client, mutation{
		group: "batch", resource: "jobs",
		patch: `{op: "replace", path: "/spec/template/spec/containers/0/command", value: ["/bin/preflight", "plain-pass"]}`,
		inEffect: func() bool {
			admitted, err := client.BatchV1().Jobs(zooNamespace).Create(t.Context(), probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if err != nil {
				t.Fatal(err)
			}
			return len(admitted.Spec.Template.Spec.Containers[0].Command) == 2
		},
	})()
	return expectUndecided(t, runPreflight(t, 4, "--to", to), launch.ReasonAlteredByAdmission)
}

// probeSpec returns the spec of a pod for a dry run, which shows whether a policy is in
// effect.
func probeSpec() corev1.PodSpec {
	return corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "probe", Image: zooImage, Command: []string{"/bin/true"}}},
	}
}

// mutation is an admission policy that changes new objects.
type mutation struct {
	group, resource string
	// patch is the argument of JSONPatch.
	patch string
	// inEffect reports whether the API server applies the policy.
	inEffect func() bool
}

// mutate creates the policy, and returns when it is in effect. The returned function
// deletes it, and returns when it is not in effect any more.
func mutate(t *testing.T, client kubernetes.Interface, m mutation) (restore func()) {
	t.Helper()
	name := "mutate-" + m.resource
	admission := client.AdmissionregistrationV1()
	_, err := admission.MutatingAdmissionPolicies().Create(t.Context(), &admissionregistrationv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{m.group}, APIVersions: []string{"v1"}, Resources: []string{m.resource}},
				},
			}}},
			Mutations: []admissionregistrationv1.Mutation{{
				PatchType: admissionregistrationv1.PatchTypeJSONPatch,
				JSONPatch: &admissionregistrationv1.JSONPatch{Expression: "[JSONPatch" + m.patch + "]"},
			}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = admission.MutatingAdmissionPolicyBindings().Create(t.Context(), &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for !m.inEffect() {
	}
	return func() {
		testCluster.Kubectl(t, "delete", "mutatingadmissionpolicies,mutatingadmissionpolicybindings", name)
		for m.inEffect() {
		}
	}
}

func antiAffinity(t *testing.T, _ kubernetes.Interface) string {
	t.Helper()
	publish(t, map[string]animal{"first": {Ending: "pass", Change: func(job *batchv1.Job) {
		job.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				LabelSelector: &metav1.LabelSelector{}, NamespaceSelector: &metav1.LabelSelector{}, TopologyKey: "kubernetes.io/hostname",
			}},
		}}
	}}})
	f := byName(runPreflight(t, 3, "--to", to))["Zoo.First"]
	if f.Outcome != preflight.Fail || f.Reason != string(launch.ReasonRefusedScheduling) {
		t.Errorf("%+v; want Fail with RefusedScheduling", f)
	}
	return fmt.Sprintf("Blocked, %s(%s)", f.Outcome, f.Reason)
}
