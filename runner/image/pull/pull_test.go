package pull_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/update"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/image/pull"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
)

// node is a node, by default ready and schedulable.
type node struct {
	name                     string
	cordoned, down, pressure bool
	windows                  bool
	// free is the free space that its kubelet reports, in JSON; empty when the
	// kubelet denies the request.
	free string
}

func (n node) object() corev1.Node {
	status := func(value bool) corev1.ConditionStatus {
		if value {
			return corev1.ConditionTrue
		}
		return corev1.ConditionFalse
	}
	object := corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.name}, Spec: corev1.NodeSpec{Unschedulable: n.cordoned},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: status(!n.down)}, {Type: corev1.NodeDiskPressure, Status: status(n.pressure)},
		}},
	}
	if n.windows {
		object.Status.NodeInfo.OperatingSystem = "windows"
	}
	return object
}

// starter records all Jobs and rejects them.
type starter struct{ started chan jobplan.Check }

var errRejected = errors.New("the Job is rejected")

func (s starter) Start(_ context.Context, check jobplan.Check) error {
	s.started <- check
	return errRejected
}

func (starter) UID(jobplan.Check) types.UID { return "" }

// namingStarter rejects each Job with an error that has its name, as API servers do.
type namingStarter struct{}

func (namingStarter) Start(_ context.Context, check jobplan.Check) error {
	return fmt.Errorf("jobs.batch %q is forbidden", check.Job.Name)
}

func (namingStarter) UID(jobplan.Check) types.UID { return "" }

func TestManyCausesAreLimited(t *testing.T) {
	var many []node
	for i := range 50 {
		many = append(many, node{name: fmt.Sprintf("node-%02d", i), free: "3000"})
	}
	nodes := pull.Nodes{
		Client: kubelets(t, many), List: lister(many), Start: namingStarter{},
		Run: jobplan.Run{ID: "run", Target: update.Release{Version: "4.19.0"}}, Parallelism: 8,
	}
	findings, err := nodes.Pull(t.Context(), map[string]string{"etcd": "quay.io/openshift/etcd@sha256:" + strings.Repeat("e", 64)}, 1000)
	if err != nil {
		t.Fatal(err)
	}
	affected, count := 0, 0
	for _, f := range findings {
		if f.Name != pull.Name {
			continue
		}
		of, err := strconv.Atoi(f.Evidence["nodes"])
		if err != nil || f.Outcome != preflight.Unknown {
			t.Errorf("%+v; want Unknown and the number of nodes", f)
		}
		affected += of
		count++
	}
	last := findings[len(findings)-1].Message
	if count != 10 || affected != 50 || !strings.Contains(last, "and 36 more") || !strings.Contains(last, "41 more causes, the first: ") {
		t.Errorf("%d findings about %d nodes, the last with message %q; want 10 findings about all 50", count, affected, last)
	}
}

func TestEligibleNodes(t *testing.T) {
	const needed = 1000
	images := map[string]string{"etcd": "quay.io/openshift/etcd@sha256:" + strings.Repeat("e", 64)}
	for name, tc := range map[string]struct {
		reason string
		nodes  []node
		images map[string]string
		// want are findings as "Name Outcome Reason: names of nodes".
		want []string
		// started are the nodes with a Job.
		started []string
		// commands are those of the actions.
		commands []string
	}{
		"Ready": {
			reason: "the node has free space", nodes: []node{{name: "a", free: "3000"}}, images: images, started: []string{"a"},
			want: []string{"NodeDiskSpace Pass DiskSpace: ", "ImagePull Unknown ImagePullNotTried: a"},
		},
		"Unknown space": {
			reason: "a kubelet that denies the request does not exclude its node", nodes: []node{{name: "a"}}, images: images,
			started: []string{"a"},
			want:    []string{"NodeDiskSpace Pass DiskSpace: ", "ImagePull Unknown ImagePullNotTried: a"},
		},
		"Cordoned": {
			reason: "no Job is started on a cordoned node", nodes: []node{{name: "a", cordoned: true}, {name: "b"}}, images: images,
			started: []string{"b"},
			want:    []string{"ImagePull Skipped NodeCordoned: a", "NodeDiskSpace Pass DiskSpace: ", "ImagePull Unknown ImagePullNotTried: b"},
		},
		"None": {
			reason: "no node can pull", nodes: []node{{name: "a", cordoned: true}, {name: "b", down: true}, {name: "c", windows: true}},
			images:   images,
			want:     []string{"ImagePull Skipped NodeCordoned: a", "ImagePull Skipped NodeNotReady: b", "ImagePull Unknown NoNode: "},
			commands: []string{"oc get nodes"},
		},
		"Disk pressure": {
			reason: "no Job is started on a node with DiskPressure", nodes: []node{{name: "a", pressure: true, free: "9000"}, {name: "b"}},
			images: images, started: []string{"b"},
			want:     []string{"NodeDiskSpace Fail DiskPressure: a", "ImagePull Unknown ImagePullNotTried: b"},
			commands: []string{"oc get --raw /api/v1/nodes/a/proxy/stats/summary"},
		},
		"Too small": {
			reason: "the compressed images do not fit on the disk", nodes: []node{{name: "a", free: "999"}, {name: "b", free: "1000"}},
			images: images, started: []string{"b"},
			want:     []string{"NodeDiskSpace Fail DiskTooSmall: a", "NodeDiskSpace Warn DiskSpaceLow: b", "ImagePull Unknown ImagePullNotTried: b"},
			commands: []string{"oc get --raw /api/v1/nodes/a/proxy/stats/summary", "oc get --raw /api/v1/nodes/b/proxy/stats/summary"},
		},
		"Invalid space": {
			reason: "an invalid response leaves the free space unknown", nodes: []node{{name: "a", free: `"many"`}}, images: images,
			started: []string{"a"},
			want:    []string{"NodeDiskSpace Pass DiskSpace: ", "ImagePull Unknown ImagePullNotTried: a"},
		},
		"Same cause": {
			reason: "nodes with one cause have one finding", nodes: []node{{name: "b"}, {name: "a"}, {name: "c"}}, images: images,
			started: []string{"a", "b", "c"},
			want:    []string{"NodeDiskSpace Pass DiskSpace: ", "ImagePull Unknown ImagePullNotTried: a b c"},
		},
		"Nothing to pull": {
			reason: "the release has no checks to run", nodes: []node{{name: "a"}},
			want: []string{"NodeDiskSpace Pass DiskSpace: ", "ImagePull Skipped NothingToPull: "},
		},
	} {
		t.Run(name, func(t *testing.T) {
			start := starter{started: make(chan jobplan.Check, len(tc.nodes))}
			nodes := pull.Nodes{
				Client: kubelets(t, tc.nodes), List: lister(tc.nodes), Start: start,
				Run: jobplan.Run{ID: "run", Target: update.Release{Version: "4.19.0"}}, Parallelism: 2,
			}
			findings, err := nodes.Pull(t.Context(), tc.images, needed)
			if err != nil {
				t.Fatal(err)
			}
			var got, commands []string
			for _, f := range findings {
				var names []string
				for _, object := range f.Objects {
					names = append(names, object.Name)
				}
				got = append(got, fmt.Sprintf("%s %s %s: %s", f.Name, f.Outcome, f.Reason, strings.Join(names, " ")))
				commands = append(commands, commandsOf(f.Actions)...)
				if violates := f.Outcome == preflight.Fail || f.Outcome == preflight.Unknown; violates && f.Remediation == "" {
					t.Errorf("%s: %s has no remedy", tc.reason, f.Reason)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want, +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.commands, commands); diff != "" {
				t.Errorf("%s: commands (-want, +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.started, pinned(t, start.started)); diff != "" {
				t.Errorf("%s: nodes with a Job (-want, +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// commandsOf returns the commands of other programs among actions.
func commandsOf(actions []finding.Action) []string {
	var commands []string
	for _, action := range actions {
		if action.Type == finding.ActionRun {
			commands = append(commands, action.Command)
		}
	}
	return commands
}

func lister(nodes []node) func(context.Context) ([]corev1.Node, error) {
	return func(context.Context) ([]corev1.Node, error) {
		var objects []corev1.Node
		for _, node := range nodes {
			objects = append(objects, node.object())
		}
		return objects, nil
	}
}

// kubelets returns a client for the kubelets of nodes.
func kubelets(t *testing.T, nodes []node) kubernetes.Interface {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, node := range nodes {
			if node.free != "" && r.URL.Path == "/api/v1/nodes/"+node.name+"/proxy/stats/summary" {
				fmt.Fprintf(w, `{"node":{"runtime":{"imageFs":{"availableBytes":%s}}}}`, node.free)
				return
			}
		}
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(server.Close)
	return kubernetes.NewForConfigOrDie(&rest.Config{Host: server.URL})
}

// pinned returns the nodes that Jobs are pinned to, sorted.
func pinned(t *testing.T, started chan jobplan.Check) []string {
	t.Helper()
	close(started)
	var names []string
	for check := range started {
		spec := check.Job.Spec.Template.Spec
		term := spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0]
		names = append(names, term.MatchFields[0].Values...)
		if check.Job.Namespace != pull.Namespace || check.Job.Labels[label.Run] != "run" || check.Job.Spec.Template.Labels[label.Run] != "run" {
			t.Errorf("the Job is %+v, want the labels and the namespace of the run", check.Job.ObjectMeta)
		}
	}
	slices.Sort(names)
	return names
}

func TestNodesCannotBeRead(t *testing.T) {
	cause := errors.New("nodes are forbidden")
	nodes := pull.Nodes{List: func(context.Context) ([]corev1.Node, error) { return nil, cause }}
	if findings, err := nodes.Pull(t.Context(), nil, 0); !errors.Is(err, cause) {
		t.Errorf("%v, %v; want the error of List", findings, err)
	}
}

func waiting(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

func TestRead(t *testing.T) {
	const soon, later = time.Second, time.Hour
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		Reason: "StartError", ExitCode: 128,
		ContainerID: "containerd://1",
	}}
	for name, tc := range map[string]struct {
		reason     string
		states     []corev1.ContainerState
		phase      corev1.PodPhase
		waited     time.Duration
		failed     int
		final      bool
		incomplete string
		wantDone   bool
	}{
		"Cannot be started": {
			reason: "containerd reports it when it starts the container", states: []corev1.ContainerState{ended},
			wantDone: true,
		},
		"Cannot be created": {
			reason: "CRI-O reports it when it creates the container",
			states: []corev1.ContainerState{waiting("CreateContainerError", "exec not found")}, wantDone: true,
		},
		"User not permitted": {
			reason: "the kubelet checks the user after the pull",
			states: []corev1.ContainerState{waiting("CreateContainerConfigError", "runAsNonRoot")}, wantDone: true,
		},
		"Being pulled": {
			reason: "the pull is in progress", states: []corev1.ContainerState{ended, waiting("ContainerCreating", "")},
			incomplete: "not tried: 1 of 2 images",
		},
		"Missing": {
			reason: "a retry cannot succeed", states: []corev1.ContainerState{waiting("ErrImagePull", "manifest unknown")}, failed: 1, final: true,
			wantDone: true,
		},
		"Missing, and another pending": {
			reason: "a final failure does not end the other pulls",
			states: []corev1.ContainerState{waiting("ErrImagePull", "manifest unknown"), waiting("ContainerCreating", "")},
			failed: 1, final: true, incomplete: "not tried: 1 of 2 images",
		},
		"Busy registry, early": {
			reason: "a retry may succeed",
			states: []corev1.ContainerState{waiting("ImagePullBackOff", "503 Service Unavailable")}, failed: 1,
		},
		"Busy registry, late": {
			reason: "no retry succeeded in time",
			states: []corev1.ContainerState{waiting("ImagePullBackOff", "503 Service Unavailable")}, waited: later, failed: 1, wantDone: true,
		},
		"Evicted": {
			reason: "the kubelet created no container", phase: corev1.PodFailed,
			incomplete: "not tried: 1 of 1 image before the pod ended (Evicted)", wantDone: true,
			states: []corev1.ContainerState{{Terminated: &corev1.ContainerStateTerminated{Reason: "ContainerStatusUnknown", ExitCode: 137}}},
		},
		"No status yet": {reason: "the kubelet has not processed the pod", incomplete: "not tried: 1 of 1 image"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Status: corev1.PodStatus{Phase: tc.phase, Reason: "Evicted"}}
			for i := range max(1, len(tc.states)) {
				container := fmt.Sprintf("image-%d", i)
				pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: container, Image: "quay.io/" + container})
				if len(tc.states) > 0 {
					pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses,
						corev1.ContainerStatus{Name: container, State: tc.states[i], Image: "sha256:other"})
				}
			}
			read, done := pull.Read(pod, max(tc.waited, soon))
			if done != tc.wantDone || len(read.Failed) != tc.failed || !strings.HasPrefix(read.Incomplete, tc.incomplete) ||
				(tc.incomplete == "") != (read.Incomplete == "") {
				t.Errorf("%s: done %t, %+v; want done %t, %d failed, incomplete %q", tc.reason, done, read, tc.wantDone, tc.failed, tc.incomplete)
			}
			if commands := commandsOf(read.Actions); (read.Remedy == "") != (tc.incomplete == "") || (len(commands) == 0) != (tc.incomplete == "") {
				t.Errorf("%s: remedy %q with commands %q, want both if and only if the pulls are incomplete", tc.reason, read.Remedy, commands)
			}
			if failure := read.Failed["quay.io/image-0"]; tc.failed > 0 && (failure.Final != tc.final || failure.Remedy == "") {
				t.Errorf("%s: %+v, want final %t and a remedy", tc.reason, failure, tc.final)
			}
		})
	}
}
