package v1alpha1_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
	"github.com/openshift/update-preflight/test/build"
	"github.com/openshift/update-preflight/test/cluster"
)

var local *cluster.Cluster

func TestMain(m *testing.M) {
	cluster.Main(m, func(c *cluster.Cluster) { local = c }, cluster.ControlPlaneOnly(),
		cluster.CRDs("../../../../manifests/crd/preflight.openshift.io_updatepreflights.yaml"))
}

func client(t *testing.T) dynamic.NamespaceableResourceInterface {
	t.Helper()
	connected, err := dynamic.NewForConfig(local.Config)
	if err != nil {
		t.Fatal(err)
	}
	return connected.Resource(v1alpha1.GroupVersion().WithResource(v1alpha1.Resource))
}

const (
	digest = "sha256:0123456789012345678901234567890123456789012345678901234567890123"
	image  = "quay.io/openshift-release-dev/ocp-release@" + digest
	byName = "target: {version: 4.19.1}"
)

// object is an UpdatePreflight with this spec in YAML.
func object(t *testing.T, name, spec string) *unstructured.Unstructured {
	t.Helper()
	var content map[string]any
	if err := yaml.Unmarshal([]byte(spec), &content); err != nil {
		t.Fatalf("%v: %s", err, spec)
	}
	created := &unstructured.Unstructured{Object: map[string]any{"spec": content}}
	created.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind(v1alpha1.Kind))
	created.SetName(name)
	return created
}

func create(t *testing.T, name, spec string) *unstructured.Unstructured {
	t.Helper()
	created, err := client(t).Create(t.Context(), object(t, name, spec), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := client(t).Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
	return created
}

// names are a list of that many names in YAML.
func names(count, length int) string {
	var all []string
	for i := range count {
		all = append(all, fmt.Sprintf("N%0*d", length-1, i))
	}
	return "[" + strings.Join(all, ", ") + "]"
}

func TestValidation(t *testing.T) {
	const window = byName + "\nwhen: {window: "
	for name, tc := range map[string]struct {
		reason, spec string
		object       string
		// want is part of the error; empty for none.
		want string
	}{
		"Version":    {reason: "a version is sufficient", spec: byName},
		"Prerelease": {reason: "a prerelease is a semantic version", spec: "target: {version: 4.19.0-rc.1}"},
		"Build":      {reason: "build metadata is part of a semantic version", spec: "target: {version: 4.19.0-0.ci+x.1}"},
		"Image":      {reason: "an image by digest", spec: "target: {image: '" + image + "'}"},
		"ImageOfPort": {
			reason: "a registry may have a port, an image a tag and a digest",
			spec:   "target: {image: 'localhost:5000/a/b:tag@" + digest + "'}",
		},
		"Latest": {reason: "the newest available update", spec: "target: {latest: true}"},
		"Complete": {reason: "all fields at their bounds", spec: window +
			"{start: '2026-11-22T12:00:00Z', end: '2026-11-22T12:00:01Z', mode: Document}}\nimages: pull-all\nacceptedFindings: " + names(64, 256)},
		"At":          {reason: "a time", spec: byName + "\nwhen: {at: '2026-11-22T12:00:00Z'}"},
		"Operator":    {reason: "a window without an end", spec: window + "{start: '2026-11-22T12:00:00Z', mode: Operator}}"},
		"LongestName": {reason: "names are labels", spec: byName, object: strings.Repeat("a", 63)},
		"LongName": {
			reason: "names are bounded", spec: byName, object: strings.Repeat("a", 64),
			want: "metadata.name may have at most 63 characters",
		},
		"NoSpec":   {reason: "the target is required", spec: "{}", want: "spec.target: Required value"},
		"NoTarget": {reason: "a target selects a release", spec: "target: {}", want: "set exactly one of version, image and latest"},
		"TwoTargets": {
			reason: "a target selects one release", spec: "target: {version: 4.19.1, latest: true}",
			want: "set exactly one of version, image and latest",
		},
		"AllTargets": {
			reason: "a target selects one release", spec: "target: {version: 4.19.1, latest: true, image: '" + image + "'}",
			want: "set exactly one of version, image and latest",
		},
		"NotLatest": {reason: "false selects no release", spec: "target: {latest: false}", want: "latest must be true if it is set"},
		"NotSemVer": {reason: "a minor version is no release", spec: "target: {version: '4.19'}", want: "spec.target.version"},
		"LeadingZero": {
			reason: "a semantic version has no leading zeros", spec: "target: {version: 4.19.01}",
			want: "spec.target.version",
		},
		"EmptyVersion": {reason: "an empty version is no release", spec: "target: {version: ''}", want: "spec.target.version"},
		"LongVersion": {
			reason: "versions are bounded", spec: "target: {version: 4.19.1-" + strings.Repeat("a", 122) + "}",
			want: "spec.target.version",
		},
		"Tag": {
			reason: "a tag may name another image later", spec: "target: {image: 'quay.io/a/b:4.19.1'}",
			want: "spec.target.image",
		},
		"ShortDigest": {reason: "a digest is complete", spec: "target: {image: 'quay.io/a/b@sha256:0123'}", want: "spec.target.image"},
		"OtherDigest": {
			reason: "records have SHA-256 digests",
			spec:   "target: {image: 'quay.io/a/b@sha512:" + strings.Repeat("0", 128) + "'}", want: "spec.target.image",
		},
		"ImageOfLines": {reason: "an image is one line", spec: `target: {image: "a\nb@` + digest + `"}`, want: "spec.target.image"},
		"LongImage": {
			reason: "images are bounded", spec: "target: {image: '" + strings.Repeat("a", 442) + "@" + digest + "'}",
			want: "spec.target.image",
		},
		"EmptyWhen": {
			reason: "a time is named, or when is omitted", spec: byName + "\nwhen: {}",
			want: "set exactly one of at and window",
		},
		"BothTimes": {
			reason: "one time", spec: window + "{start: '2026-11-22T12:00:00Z'}, at: '2026-11-22T12:00:00Z'}",
			want: "set exactly one of at and window",
		},
		"NotATime": {reason: "times are RFC 3339", spec: byName + "\nwhen: {at: tomorrow}", want: "spec.when.at"},
		"NoStart": {
			reason: "a window has a start", spec: window + "{mode: Operator}}",
			want: "spec.when.window.start: Required value",
		},
		"EndBeforeStart": {
			reason: "a window is not negative", spec: window + "{start: '2026-11-22T12:00:00Z', end: '2026-11-22T11:59:59Z'}}",
			want: "end must be after start",
		},
		"EndAtStart": {
			reason: "a window is not empty",
			spec:   window + "{start: '2026-11-22T12:00:00Z', end: '2026-11-22T13:00:00+01:00'}}", want: "end must be after start",
		},
		"OperatorWithEnd": {reason: "a window of mode Operator has no end", spec: window +
			"{start: '2026-11-22T12:00:00Z', end: '2026-11-22T13:00:00Z', mode: Operator}}", want: "a window of mode Operator has no end"},
		"OtherMode": {
			reason: "a window has one of two modes", spec: window + "{start: '2026-11-22T12:00:00Z', mode: Managed}}",
			want: "Unsupported value",
		},
		"ManyFindings": {reason: "lists are bounded", spec: byName + "\nacceptedFindings: " + names(65, 8), want: "spec.acceptedFindings"},
		"LongFinding": {
			reason: "names of findings are bounded", spec: byName + "\nacceptedFindings: " + names(1, 257),
			want: "spec.acceptedFindings",
		},
		"LowerCaseFinding": {reason: "no finding has the name", spec: byName + "\nacceptedFindings: [risk]", want: "spec.acceptedFindings"},
		"ControlInFinding": {
			reason: "no finding has the name", spec: byName + "\nacceptedFindings: [\"A\\x1b[31m\"]",
			want: "spec.acceptedFindings",
		},
		"FindingTwice":       {reason: "names are a set", spec: byName + "\nacceptedFindings: [Risk, Risk]", want: "Duplicate value"},
		"OtherImages":        {reason: "a mode that the runner does not have", spec: byName + "\nimages: always", want: "Unsupported value"},
		"AcceptedNotAString": {reason: "names are text", spec: byName + "\nacceptedFindings: [{}]", want: "spec.acceptedFindings"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.object == "" {
				tc.object = strings.ToLower(name)
			}
			_, err := client(t).Create(t.Context(), object(t, tc.object, tc.spec), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("%s: %v", tc.reason, err)
			case tc.want != "" && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("%s: the error has no %q: %v", tc.reason, tc.want, err)
			}
		})
	}
}

func TestUpdates(t *testing.T) {
	for name, tc := range map[string]struct{ reason, before, after, want string }{
		"Version":  {reason: "the history is of the target", before: byName, after: "target: {version: 4.19.2}", want: "the target is immutable"},
		"Kind":     {reason: "the history is of the target", before: byName, after: "target: {latest: true}", want: "the target is immutable"},
		"When":     {reason: "a preflight can be scheduled again", before: byName, after: byName + "\nwhen: {at: '2026-11-22T12:00:00Z'}"},
		"Accepted": {reason: "a finding can be accepted when it is known", before: byName, after: byName + "\nacceptedFindings: [Risk]"},
		"Images":   {reason: "images can be checked more thoroughly", before: byName, after: byName + "\nimages: pull"},
	} {
		t.Run(name, func(t *testing.T) {
			created := create(t, strings.ToLower(name), tc.before)
			changed := object(t, created.GetName(), tc.after)
			changed.SetResourceVersion(created.GetResourceVersion())
			_, err := client(t).Update(t.Context(), changed, metav1.UpdateOptions{})
			if (tc.want != "" || err != nil) && (tc.want == "" || err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%s: error %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}

// full is a status at its bounds.
func full() v1alpha1.UpdatePreflightStatus {
	now := metav1.NewTime(time.Date(2026, 11, 22, 12, 0, 0, 0, time.Local))
	status := v1alpha1.UpdatePreflightStatus{
		ObservedGeneration: 1, Phase: v1alpha1.Blocked, Target: &v1alpha1.Release{Version: "4.19.1", Image: image},
		Run: "6ba7b810-9dad-41d1-80b4-00c04fd430c8", Decision: "Blocked", ValidUntil: &now,
		BlockingOmitted: 1, UndecidedOmitted: 2, AcceptedOmitted: 3,
		Conditions: []metav1.Condition{{
			Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: "Blocked", Message: "blocked by A",
			LastTransitionTime: now, ObservedGeneration: 1,
		}},
	}
	for i := range v1alpha1.MaxNames {
		name := fmt.Sprintf("N%0255d", i)
		status.Blocking, status.Undecided, status.Accepted = append(status.Blocking, name), append(status.Undecided, name),
			append(status.Accepted, name)
	}
	for i := range v1alpha1.MaxHistory {
		status.History = append(status.History, v1alpha1.Verdict{
			Release: v1alpha1.Release{Version: "4.19.1", Image: fmt.Sprintf("%s%d", image[:len(image)-1], i)}, Run: "run", Decision: "Ready",
			CompletionTime: now,
		})
	}
	return status
}

// writeStatus writes a status, and returns the object.
func writeStatus(t *testing.T, name string, status v1alpha1.UpdatePreflightStatus) (*unstructured.Unstructured, error) {
	t.Helper()
	written, err := client(t).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if written.Object["status"], err = runtime.DefaultUnstructuredConverter.ToUnstructured(&status); err != nil {
		t.Fatal(err)
	}
	return client(t).UpdateStatus(t.Context(), written, metav1.UpdateOptions{})
}

func TestStatusIsStored(t *testing.T) {
	created := create(t, "status", byName)
	written, err := writeStatus(t, "status", full())
	if err != nil {
		t.Fatal(err)
	}
	var got v1alpha1.UpdatePreflight
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(written.Object, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(full(), got.Status); diff != "" {
		t.Errorf("the status is stored as it was written (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(got.Status, got.DeepCopy().Status); diff != "" {
		t.Errorf("a copy is equal (-want +got):\n%s", diff)
	}
	if got.Generation != created.GetGeneration() {
		t.Errorf("a status changed the generation from %d to %d", created.GetGeneration(), got.Generation)
	}
	if got.Spec.Images != "check" {
		t.Errorf("the default mode of the images is %q, want check", got.Spec.Images)
	}
}

func TestStatusIsBounded(t *testing.T) {
	create(t, "bounded", byName)
	for name, tc := range map[string]struct {
		reason string
		change func(*v1alpha1.UpdatePreflightStatus)
	}{
		"Blocking":  {reason: "names are bounded", change: func(s *v1alpha1.UpdatePreflightStatus) { s.Blocking = append(s.Blocking, "More") }},
		"Undecided": {reason: "names are bounded", change: func(s *v1alpha1.UpdatePreflightStatus) { s.Undecided = append(s.Undecided, "More") }},
		"Accepted":  {reason: "names are bounded", change: func(s *v1alpha1.UpdatePreflightStatus) { s.Accepted = append(s.Accepted, "More") }},
		"History": {reason: "the history is bounded", change: func(s *v1alpha1.UpdatePreflightStatus) {
			s.History = append(s.History, v1alpha1.Verdict{Release: v1alpha1.Release{Image: image}, Run: "run", Decision: "Ready"})
		}},
		"Twice": {
			reason: "one verdict for each release",
			change: func(s *v1alpha1.UpdatePreflightStatus) { s.History[1].Image = s.History[0].Image },
		},
		"Phase":    {reason: "the phases are known", change: func(s *v1alpha1.UpdatePreflightStatus) { s.Phase = "Done" }},
		"Decision": {reason: "the decisions are known", change: func(s *v1alpha1.UpdatePreflightStatus) { s.Decision = "Maybe" }},
	} {
		t.Run(name, func(t *testing.T) {
			status := full()
			tc.change(&status)
			if _, err := writeStatus(t, "bounded", status); !apierrors.IsInvalid(err) {
				t.Errorf("%s: error %v", tc.reason, err)
			}
		})
	}
}

// kubectl runs kubectl, and returns what it writes.
func kubectl(t *testing.T, args ...string) (string, error) {
	t.Helper()
	root, err := build.Root()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), build.Bin(root)+"/kubectl", args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+local.Kubeconfig)
	output, err := command.CombinedOutput()
	return string(output), err
}

func TestKubectl(t *testing.T) {
	create(t, "shown", byName)
	status := full()
	status.Blocking = []string{"AdminAck-x", "EtcdBackup"}
	if _, err := writeStatus(t, "shown", status); err != nil {
		t.Fatal(err)
	}
	shown, err := kubectl(t, "get", "updatepreflights", "shown")
	if err != nil {
		t.Fatal(shown, err)
	}
	lines := strings.Split(shown, "\n")
	if got, want := strings.Join(strings.Fields(lines[0]), " "), "NAME HOSTED CLUSTER TARGET DECISION BLOCKING VALID UNTIL AGE"; got != want {
		t.Errorf("columns %q, want %q", got, want)
	}
	if got, want := strings.Fields(lines[1])[:4],
		[]string{"shown", "4.19.1", "Blocked", `["AdminAck-x","EtcdBackup"]`}; !cmp.Equal(got, want) {
		t.Errorf("row %q, want %q", got, want)
	}
	if waited, err := kubectl(t, "wait", "--for=condition=Ready", "--timeout=0s", "updatepreflight/shown"); err == nil {
		t.Errorf("kubectl wait returned for an update that is Blocked: %s", waited)
	}
	status.Conditions[0].Status = metav1.ConditionTrue
	if _, err := writeStatus(t, "shown", status); err != nil {
		t.Fatal(err)
	}
	if waited, err := kubectl(t, "wait", "--for=condition=Ready", "--timeout=60s", "updatepreflight/shown"); err != nil {
		t.Errorf("kubectl wait: %v: %s", err, waited)
	}
}

func TestScheme(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	var list runtime.Object = &v1alpha1.UpdatePreflightList{Items: []v1alpha1.UpdatePreflight{{Status: full()}}}
	kinds, _, err := scheme.ObjectKinds(list)
	if err != nil || kinds[0] != v1alpha1.GroupVersion().WithKind("UpdatePreflightList") {
		t.Errorf("the kind of the list is %v: %v", kinds, err)
	}
	if !meta.IsListType(list.DeepCopyObject()) {
		t.Error("the list is no list of objects")
	}
}

func TestOwned(t *testing.T) {
	for label, want := range map[string]bool{"selected": true, "ahead": true, "user": false, "": false} {
		labeled := &v1alpha1.UpdatePreflight{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelRequester: label}}}
		if labeled.Owned() != want {
			t.Errorf("the controller owns an object with the label %q: %t, want %t", label, labeled.Owned(), want)
		}
	}
}
