package records_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/report"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/record"
)

// editor is a client of a user who may write ConfigMaps in the namespace of the
// records, and nothing else.
func (w world) editor() kubernetes.Interface {
	w.t.Helper()
	const user = "editor-of-configmaps"
	needs := access.Needs{Required: access.Verbs(access.Request{Resource: "configmaps", Namespace: record.Namespace}, "get", "list", "create", "update", "delete")}
	w.bind(user, needs)
	config := rest.CopyConfig(local.Config)
	config.QPS, config.Impersonate.UserName = -1, user
	return kubernetes.NewForConfigOrDie(config)
}

// bind gives a user these permissions in one namespace.
func (w world) bind(user string, needs access.Needs) {
	w.t.Helper()
	for _, object := range needs.Roles(user, []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}}) {
		var err error
		switch object := object.(type) {
		case *rbacv1.Role:
			_, err = w.client.RbacV1().Roles(object.Namespace).Create(w.t.Context(), object, metav1.CreateOptions{})
		case *rbacv1.RoleBinding:
			_, err = w.client.RbacV1().RoleBindings(object.Namespace).Create(w.t.Context(), object, metav1.CreateOptions{})
		}
		if err != nil && !apierrors.IsAlreadyExists(err) {
			w.t.Fatal(err)
		}
	}
	w.await(user)
}

// await waits until the authorizer has observed the roles of a user, who may list the
// records.
func (w world) await(user string) {
	w.t.Helper()
	asked := authorizationv1.SubjectAccessReviewSpec{
		User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: record.Namespace, Verb: "list", Resource: "configmaps"},
	}
	err := wait.PollUntilContextTimeout(w.t.Context(), 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		reviewed, err := w.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: asked}, metav1.CreateOptions{})
		return err == nil && reviewed.Status.Allowed, err
	})
	if err != nil {
		w.t.Fatalf("%s may not list the records: %v", user, err)
	}
}

// header is the header of a recorded run.
func (w world) header(client kubernetes.Interface, id string) *corev1.ConfigMap {
	w.t.Helper()
	found, err := client.CoreV1().ConfigMaps(record.Namespace).List(w.t.Context(), metav1.ListOptions{LabelSelector: "preflight.openshift.io/record=" + id})
	if err != nil || len(found.Items) != 1 {
		w.t.Fatalf("want one header of run %s, got %d: %v", id, len(found.Items), err)
	}
	return &found.Items[0]
}

// forge changes the header of a run as an editor of ConfigMaps.
func (w world) forge(id string, change func(*corev1.ConfigMap)) {
	w.t.Helper()
	client := w.editor()
	header := w.header(client, id)
	change(header)
	if _, err := client.CoreV1().ConfigMaps(record.Namespace).Update(w.t.Context(), header, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// packed is what the header has of a text.
func packed(t *testing.T, text string) []byte {
	t.Helper()
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	if _, err := writer.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

// withReport is the content of report.gz.
func (w world) withReport(decided report.Report) []byte {
	w.t.Helper()
	state, err := json.Marshal(w.basis())
	if err != nil {
		w.t.Fatal(err)
	}
	text, err := json.Marshal(decided)
	if err != nil {
		w.t.Fatal(err)
	}
	return packed(w.t, string(state)+"\n"+string(text))
}

// An editor of ConfigMaps makes no record Ready.
func TestForgedRecords(t *testing.T) {
	passing := decided(found("Etcd.Quorum", preflight.Pass, "Passed"))
	passing.Verdict.ValidUntil = "2999-01-01T00:00:00Z"
	failing := decided(found("Etcd.Quorum", preflight.Fail, "NoQuorum"))
	for name, tc := range map[string]struct {
		reason string
		// attack returns the ID of the forged run; blocked is the run of another release.
		attack func(w world, blocked string) string
	}{
		"Report": {reason: "the report was replaced", attack: func(w world, blocked string) string {
			w.t.Helper()
			w.forge(blocked, func(header *corev1.ConfigMap) { header.BinaryData["report.gz"] = w.withReport(passing) })
			return blocked
		}},
		"Everything": {reason: "report, decision, labels and verdict.json were replaced", attack: func(w world, blocked string) string {
			w.t.Helper()
			w.forge(blocked, func(header *corev1.ConfigMap) {
				header.BinaryData["report.gz"] = w.withReport(passing)
				header.Labels["preflight.openshift.io/decision"] = "Ready"
				for _, key := range []string{"run.yaml", "verdict.json"} {
					header.Data[key] = strings.ReplaceAll(header.Data[key], "Blocked", "Ready")
				}
			})
			return blocked
		}},
		"MACRemoved": {reason: "the record looks like that of an earlier version", attack: func(w world, blocked string) string {
			w.t.Helper()
			w.forge(blocked, func(header *corev1.ConfigMap) {
				header.BinaryData["report.gz"] = w.withReport(passing)
				delete(header.Data, "record.mac")
			})
			return blocked
		}},
		"OtherRun": {reason: "the record has the content of a run that was Ready", attack: func(w world, blocked string) string {
			w.t.Helper()
			other := w.header(w.client, w.ended('2', passing, w.basis()))
			w.forge(blocked, func(header *corev1.ConfigMap) {
				summary := strings.ReplaceAll(other.Data["run.yaml"], other.Labels["preflight.openshift.io/record"], blocked)
				header.Data, header.BinaryData = other.Data, other.BinaryData
				header.Data["run.yaml"] = summary
			})
			return blocked
		}},
		"Copied": {reason: "a record was deleted and created again", attack: func(w world, _ string) string {
			w.t.Helper()
			id := w.ended('2', passing, w.basis())
			header := w.header(w.client, id)
			maps := w.editor().CoreV1().ConfigMaps(record.Namespace)
			if err := maps.Delete(w.t.Context(), header.Name, metav1.DeleteOptions{}); err != nil {
				w.t.Fatal(err)
			}
			header.ObjectMeta = metav1.ObjectMeta{Name: header.Name, Labels: header.Labels, Annotations: header.Annotations}
			if _, err := maps.Create(w.t.Context(), header, metav1.CreateOptions{}); err != nil {
				w.t.Fatal(err)
			}
			return id
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			id := tc.attack(w, w.ended('1', failing, w.basis()))
			got := w.call(undecided, "status", id)
			w.says(got.stdout, "UNDECIDED  ", "UNKNOWN  RunRecord (UnauthenticRecord)\n", "oc preflight run --to 4.19.", "Verdict: Undecided, ")
			for _, word := range []string{"Etcd.Quorum", "2999"} {
				if strings.Contains(got.stdout, word) {
					t.Errorf("%s, and status reports %s of it:\n%s", tc.reason, word, got.stdout)
				}
			}
			w.says(w.call(ready, "history").stdout, "Unverified ", "Complete, Unauthentic\n")
			w.says(w.call(ready, "history", "-o", "json").stdout, `"authenticity": "Unauthentic"`)
			w.says(w.call(failed, "diff", id, id).stderr, "error: the record of run "+id+" is not authentic: ", "oc preflight run")
			w.says(w.call(undecided, "attach", id).stdout, "(UnauthenticRecord)")
		})
	}
}

// A newer record that was edited ends the verdict of an older one: it may have been
// Blocked.
func TestAForgedRecordEndsAnOlderVerdict(t *testing.T) {
	w := newWorld(t)
	older := w.ended('1', decided(found("Etcd.Quorum", preflight.Pass, "Passed")), w.basis())
	ended := time.Now().Unix() // records have the time to the second
	w.until(func() bool { return time.Now().Unix() > ended })
	newer := w.ended('1', decided(found("Etcd.Quorum", preflight.Fail, "NoQuorum")), w.basis())
	w.forge(newer, func(header *corev1.ConfigMap) {
		header.Data["run.yaml"] = strings.ReplaceAll(header.Data["run.yaml"], "Blocked", "Ready")
	})
	w.says(w.call(undecided, "status").stdout, "(UnauthenticRecord)")
	w.says(w.call(undecided, "status", older).stdout, "Outdated   run "+newer+" of the same target is newer: the record of run "+newer+" is not authentic")
}

// The results of a run in progress that were edited are not reported, its check is not
// logged from them, and the run can be canceled.
func TestForgedRunInProgress(t *testing.T) {
	w := newWorld(t)
	id := w.left('1', []string{"Etcd.Quorum"}, result("Etcd.Quorum", found("Etcd.Quorum", preflight.Fail, "NoQuorum")))
	passing, err := json.Marshal(result("Etcd.Quorum", found("Etcd.Quorum", preflight.Pass, "Passed")))
	if err != nil {
		t.Fatal(err)
	}
	w.forge(id, func(header *corev1.ConfigMap) { header.BinaryData["results.gz"] = packed(t, string(passing)+"\n") })
	w.says(w.call(undecided, "status").stdout, "No verdict yet", "UNKNOWN  RunRecord (UnauthenticRecord)\n", "Verdict so far: Undecided, ")
	w.says(w.call(failed, "logs", id, "Etcd.Quorum").stderr, "is not authentic")
	w.says(w.call(failed, "attach", id).stderr, "error: the record of run "+id+" is not authentic: ", "oc preflight cancel "+id)
	w.says(w.call(ready, "cancel", id).stdout, "run "+id+" was canceled; 0 of 1 checks had reported\n")
	w.canceled(id)
	w.says(w.call(interrupted, "status", id).stdout, "UNKNOWN  Etcd.Quorum (Canceled)\n")
}

// Without the key, and without the permission to read it, no record has a verdict.
func TestRecordsWithoutTheKey(t *testing.T) {
	w := newWorld(t)
	id := w.ended('1', decided(found("Etcd.Quorum", preflight.Pass, "Passed")), w.basis())
	w.call(ready, "status", id)

	w.bind("reader-without-key", access.Needs{Required: record.ReadNeeds().Required})
	got := w.call(undecided, "status", id, "--as", "reader-without-key")
	w.says(got.stdout, "UNKNOWN  RunRecord (UnverifiableRecord)\n", "may not be read by this user", "oc preflight auth")
	w.says(w.call(ready, "history", "-o", "json", "--as", "reader-without-key").stdout, `"authenticity": "Unverifiable"`, `"decision": "Unverified"`)
	w.says(w.call(failed, "diff", id, id, "--as", "reader-without-key").stderr, "unknown whether the record of run "+id+" is authentic", "oc preflight auth status")

	if err := w.client.CoreV1().Secrets(record.Namespace).Delete(t.Context(), record.KeySecret, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.says(w.call(undecided, "status", id).stdout, "UNKNOWN  RunRecord (UnauthenticRecord)\n", record.KeySecret, "does not exist")
	next := w.ended('2', decided(found("Etcd.Quorum", preflight.Pass, "Passed")), w.basis())
	w.call(ready, "status", next)
	w.says(w.call(undecided, "status", id).stdout, "does not match its content")
}

// A verdict holds for a day at most, also one that a process with the key recorded.
func TestAVerdictHoldsForADay(t *testing.T) {
	w := newWorld(t)
	long := decided(found("Etcd.Quorum", preflight.Pass, "Passed"))
	long.Verdict.ValidUntil = "2999-01-01T00:00:00Z"
	id := w.ended('1', long, w.basis())
	if got := w.call(ready, "status", id).stdout; strings.Contains(got, "2999") {
		t.Errorf("the verdict holds for too long:\n%s", got)
	}
}
