package commands_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/launch/cleanup"
	"github.com/openshift/update-preflight/runner/launch/inventory"
	"github.com/openshift/update-preflight/test/exit"
	"github.com/openshift/update-preflight/test/kubelet"
	"github.com/openshift/update-preflight/test/program"
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

// forged is a label of all objects that an attack creates or changes.
const forged = "attack"

func TestAttacksOnObjects(t *testing.T) {
	byDefault.use(t)
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
		{"required anti-affinity of a check", "nothing", antiAffinity},
	} {
		t.Run(a.name, func(t *testing.T) {
			byDefault.use(t)
			fmt.Fprintf(w, "%s\t%s\t%s\n", a.name, a.reached, a.run(t, client))
			if left := testCluster.Left(t, label.Run+",!"+forged); len(left) > 0 {
				t.Errorf("objects of runs remain:\n%s", strings.Join(left, "\n"))
			}
		})
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + table.String())
}

// startRun starts a run, and returns it and its ID when it has a pod.
func startRun(t *testing.T, node *kubelet.Kubelet, args ...string) (run *program.Execution, id string) {
	t.Helper()
	run = start(t, append([]string{"run", "--to", to, "-o", "json"}, args...)...)
	return run, firstPod(t, node, run).Labels[label.Run]
}

// killRun starts a run in a process, kills it when it has a pod, and returns the ID.
func killRun(t *testing.T, node *kubelet.Kubelet, args ...string) (id string) {
	t.Helper()
	run := startProcess(t, append([]string{"run", "--to", to}, args...)...)
	id = firstPod(t, node, run).Labels[label.Run]
	run.Kill()
	return id
}

// expectUndecided expects the verdict Undecided with a finding of this reason, and returns
// both as text.
func expectUndecided(t *testing.T, result report.Report, reason string) string {
	t.Helper()
	var texts []string
	for _, f := range result.Findings {
		if f.Source == finding.SourceJob {
			texts = append(texts, fmt.Sprintf("%s %s(%s): %s", f.Name, f.Outcome, f.Reason, f.Message))
		}
		if f.Reason == reason && f.Outcome == preflight.Unknown && result.Verdict.Decision == "Undecided" {
			return fmt.Sprintf("%s, %s(%s)", result.Verdict.Decision, f.Outcome, f.Reason)
		}
	}
	t.Errorf("%s; want Undecided with %s:\n%s", result.Verdict.Decision, reason, strings.Join(texts, "\n"))
	return "another result"
}

// twoChecks returns a check, and a second one that fails.
func twoChecks() map[string]animal {
	return map[string]animal{"first": {Plain: true}, "second": {Ending: "fail", Plain: true}}
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
	second := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name: "second" + suffix, Labels: map[string]string{forged: "", label.Run: id},
			Annotations: first.Annotations,
		},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{
			forged:    "",
			label.Run: id,
		}}, Spec: first.Spec.Template.Spec}},
	}
	second.Spec.Template.Spec.Containers[0].Command = []string{"/bin/preflight", "plain-pass"}
	if _, err := jobs.Create(t.Context(), second, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func forgedJob(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	publish(t, twoChecks())
	node := newKubelet(t, 0)
	node.Code = exitCode
	run, id := startRun(t, node, "--parallelism", "1")
	forgeSecond(t, client, id)
	node.End()
	got := run.Wait()
	reported := expectUndecided(t, reportOf(t, got), "ForeignObject")
	if want := "Job " + zooNamespace + "/second-" + label.Suffix(id) + " has the label"; !strings.Contains(got.Stderr, want) {
		t.Errorf("the forged Job is not listed as foreign:\n%s", got.Stderr)
	}
	if _, err := client.BatchV1().Jobs(zooNamespace).Get(t.Context(), "second-"+label.Suffix(id), metav1.GetOptions{}); err != nil {
		t.Errorf("the forged Job was deleted: %v", err)
	}
	return reported
}

func forgedJobBeforeTakeover(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	publish(t, twoChecks())
	node := newKubelet(t, 0)
	node.Code = exitCode
	id := killRun(t, node, "--parallelism", "1")
	forgeSecond(t, client, id)
	node.End()
	return expectUndecided(t, takeOver(t, id), "ForeignObject")
}

// takeOver returns the report of a run that continues a killed one.
func takeOver(t *testing.T, killed string) report.Report {
	t.Helper()
	got := call(t, "run", "--to", to, "-o", "json", "--rerun=false") // which would end it
	result := reportOf(t, got)
	if result.Run.ID != killed {
		t.Errorf("the run is %s, want that of the killed one, %s:\n%s", result.Run.ID, killed, got.Stderr)
	}
	return result
}

func forgedRoleBeforeTakeover(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	publish(t, map[string]animal{"first": {Plain: true, Change: zoo.AsCandidate, Beside: zoo.Access("get", zoo.Annotated)}})
	node := newKubelet(t, 0)
	id := killRun(t, node)
	roles := client.RbacV1().Roles(zooNamespace)
	role, err := roles.Get(t.Context(), "candidate-"+label.Suffix(id), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	role.Rules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list"}}}
	role.Labels[forged] = ""
	if _, err := roles.Update(t.Context(), role, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	node.End()
	return expectUndecided(t, takeOver(t, id), "ForeignObject")
}

// forgedPod creates a pod that reports a pass for a check that is still running.
func forgedPod(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	publish(t, map[string]animal{"first": {Plain: true}})
	node := newKubelet(t, 0)
	node.Held = func(pod *corev1.Pod) bool { return pod.Name != "forged" }
	node.End()
	run, id := startRun(t, node, "--timeout", "15s")
	job, err := client.BatchV1().Jobs(zooNamespace).Get(t.Context(), "first-"+label.Suffix(id), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	other := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "forged", Labels: map[string]string{forged: "", label.Run: id, batchv1.JobNameLabel: job.Name}},
		Spec:       job.Spec.Template.Spec,
	}
	other.Spec.Containers[0].Command = []string{"/bin/preflight", "pass"}
	_, denied := client.CoreV1().Pods(zooNamespace).Create(t.Context(), other, metav1.CreateOptions{})
	if denied == nil || !strings.Contains(denied.Error(), "the pod of a preflight runs as planned") {
		t.Errorf("creating the forged pod: %v, want a denial by the policy of the run", denied)
	}
	result := reportOf(t, run.Wait())
	if f := byName(result)["Zoo.First"]; f.Outcome == preflight.Pass || result.Verdict.Decision != "Undecided" {
		t.Errorf("%s, %+v; want Undecided, and no pass by the forged pod", result.Verdict.Decision, f)
	}
	return "the pod is denied; " + string(result.Verdict.Decision) + ", the check is still running"
}

// labeledObjects has three objects of others with the label of a run.
func labeledObjects(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	publish(t, map[string]animal{"first": {Plain: true}})
	newKubelet(t, 0).End()
	result := runPreflight(t, exit.Ready, "--to", to, "--keep")
	first, err := client.BatchV1().Jobs(zooNamespace).Get(t.Context(), "first-"+label.Suffix(result.Run.ID), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	meta := metav1.ObjectMeta{Name: "production", Namespace: zooNamespace, Labels: map[string]string{label.Run: result.Run.ID, forged: ""}}
	job := &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: first.Spec.Template.Spec}}}
	_, configMapErr := client.CoreV1().ConfigMaps(zooNamespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: meta},
		metav1.CreateOptions{})
	_, jobErr := client.BatchV1().Jobs(zooNamespace).Create(t.Context(), job, metav1.CreateOptions{})
	meta.Namespace = ""
	_, roleErr := client.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: meta}, metav1.CreateOptions{})
	if err := errors.Join(configMapErr, jobErr, roleErr); err != nil {
		t.Fatal(err)
	}
	got := call(t, "cleanup", "--all")
	if got.Code != exit.Failed || strings.Count(got.Stderr, "is not of the run; remove the label with: oc ") != 3 ||
		!strings.Contains(got.Stdout, "deleted Job "+zooNamespace+"/first-") {
		t.Errorf("exit code %d, want 1 and three objects that are not of the run:\n%s%s", got.Code, got.Stdout, got.Stderr)
	}
	if left := testCluster.Left(t, label.Run+","+forged); len(left) != 3 {
		t.Errorf("%q remain, want all three objects of others", left)
	}
	return "exit code 1, the objects with the command that removes the label"
}

// heldJob adds a finalizer to a Job of the run.
func heldJob(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	publish(t, map[string]animal{"first": {Plain: true}})
	newKubelet(t, 0).End()
	result := runPreflight(t, exit.Ready, "--to", to, "--keep")
	name := "first-" + label.Suffix(result.Run.ID)
	patchJob(t, client, name, `{"metadata":{"finalizers":["example.com/held"]}}`)
	objects, err := metadata.NewForConfig(byDefault.Config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	_, err = cleanup.Run(ctx, inventory.New(client, objects), result.Run.ID)
	if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "example.com/held") {
		t.Errorf("error %v; want the name of the Job and its finalizer", err)
	}
	patchJob(t, client, name, `{"metadata":{"finalizers":null}}`)
	if got := call(t, "cleanup", result.Run.ID); got.Code != exit.Ready {
		t.Errorf("exit code %d of the next clean-up: %s", got.Code, got.Stderr)
	}
	return "the Job and its finalizer, within the time limit"
}

func patchJob(t *testing.T, client kubernetes.Interface, name, patch string) {
	t.Helper()
	if _, err := client.BatchV1().Jobs(zooNamespace).Patch(t.Context(), name, types.MergePatchType, []byte(patch),
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// ownedJob makes the garbage collector delete a Job of the run.
func ownedJob(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	publish(t, map[string]animal{"first": {Plain: true}})
	run, id := startRun(t, newKubelet(t, 0))
	name := "first-" + label.Suffix(id)
	for range 2 { // the run creates the Job again after the first deletion
		job := awaitJob(t, client, name)
		patchJob(t, client, name, `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"absent","uid":"`+string(job.UID)+
			`"}]}}`)
		awaitDeletion(t, client, job)
	}
	return expectUndecided(t, reportOf(t, run.Wait()), "JobDeleted")
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

func antiAffinity(t *testing.T, _ kubernetes.Interface) string {
	t.Helper()
	publish(t, map[string]animal{"first": {Plain: true, Change: func(job *batchv1.Job) {
		job.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				LabelSelector: &metav1.LabelSelector{}, NamespaceSelector: &metav1.LabelSelector{}, TopologyKey: "kubernetes.io/hostname",
			}},
		}}
	}}})
	f := byName(runPreflight(t, exit.Blocked, "--to", to))["Zoo.First"]
	if f.Outcome != preflight.Fail || f.Reason != "RefusedScheduling" {
		t.Errorf("%+v; want Fail with RefusedScheduling", f)
	}
	return fmt.Sprintf("Blocked, %s(%s)", f.Outcome, f.Reason)
}
