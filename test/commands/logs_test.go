package commands_test

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/openshift/update-preflight/test/exit"
	"github.com/openshift/update-preflight/test/program"
)

// logServer serves the logs of containers to the API server, as a kubelet does.
type logServer struct {
	world
	node string

	mutex sync.Mutex
	// logs are the logs, and calls the requests, by pod and container: "pod/container".
	logs  map[string]string
	calls map[string]int
	// cut is the number of bytes after which the first response for a container breaks.
	cut map[string]int
	// ended is closed when the containers have ended.
	ended chan struct{}
}

func (w world) serveLogs() *logServer {
	w.t.Helper()
	k := &logServer{
		world: w, node: "kubelet-" + strings.ReplaceAll(strings.ToLower(w.t.Name()), "/", "-"), logs: map[string]string{},
		calls: map[string]int{}, cut: map[string]int{}, ended: make(chan struct{}),
	}
	tlsDir := filepath.Join(byDefault.Dir, "tls")
	certificate, err := tls.LoadX509KeyPair(filepath.Join(tlsDir, "kubelet-server.crt"), filepath.Join(tlsDir, "kubelet-server.key"))
	if err != nil {
		w.t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(k)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	server.StartTLS()
	w.t.Cleanup(server.Close)
	address, ok := server.Listener.Addr().(*net.TCPAddr)
	if !ok {
		w.t.Fatalf("%T", server.Listener.Addr())
	}
	if _, err := w.Client.CoreV1().Nodes().Create(w.t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: k.node}},
		metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	// Controllers write to the node as well.
	if err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		node, err := w.Client.CoreV1().Nodes().Get(w.t.Context(), k.node, metav1.GetOptions{})
		if err != nil {
			return err
		}
		node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address.IP.String()}}
		node.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(address.Port)
		_, err = w.Client.CoreV1().Nodes().UpdateStatus(w.t.Context(), node, metav1.UpdateOptions{})
		return err
	}); err != nil {
		w.t.Fatal(err)
	}
	return k
}

// ServeHTTP serves GET /containerLogs/NAMESPACE/POD/CONTAINER.
func (k *logServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/containerLogs/"), "/")
	key := parts[1] + "/" + parts[2]
	if previous, _ := strconv.ParseBool(r.URL.Query().Get("previous")); previous {
		key += " before"
	}
	k.mutex.Lock()
	k.calls[key]++
	text, cut, first := k.logs[key], k.cut[key], k.calls[key] == 1
	k.mutex.Unlock()
	if cut > 0 && first {
		fmt.Fprint(w, text[:cut])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	fmt.Fprint(w, text)
	if follow, _ := strconv.ParseBool(r.URL.Query().Get("follow")); follow {
		_ = http.NewResponseController(w).Flush()
		select {
		case <-k.ended:
		case <-r.Context().Done():
		}
	}
}

// pod creates a pod of the Job on the node, with these states of its containers.
func (k *logServer) pod(job *batchv1.Job, name string, states map[string]corev1.ContainerStatus) *corev1.Pod {
	k.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: job.Namespace, Labels: map[string]string{batchv1.JobNameLabel: job.Name}},
		Spec:       corev1.PodSpec{NodeName: k.node, RestartPolicy: corev1.RestartPolicyNever},
	}
	for _, container := range []string{"check", "helper"} {
		if _, ok := states[container]; ok {
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: container, Image: "registry/check"})
		}
	}
	pod, err := k.Client.CoreV1().Pods(job.Namespace).Create(k.t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		k.t.Fatal(err)
	}
	return k.setStates(pod, states)
}

// setStates updates the status of a pod with the states of its containers.
func (k *logServer) setStates(pod *corev1.Pod, states map[string]corev1.ContainerStatus) *corev1.Pod {
	k.t.Helper()
	pod.Status.Phase, pod.Status.ContainerStatuses = corev1.PodRunning, nil
	for _, container := range pod.Spec.Containers {
		status := states[container.Name]
		status.Name, status.Image = container.Name, container.Image
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, status)
	}
	pod, err := k.Client.CoreV1().Pods(pod.Namespace).UpdateStatus(k.t.Context(), pod, metav1.UpdateOptions{})
	if err != nil {
		k.t.Fatal(err)
	}
	return pod
}

func running() corev1.ContainerStatus {
	return corev1.ContainerStatus{
		State:       corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}},
		ContainerID: "containerd://1",
	}
}

func terminated() corev1.ContainerStatus {
	return corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}, ContainerID: "containerd://1"}
}

func waiting(reason, message string) corev1.ContainerStatus {
	return corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}
}

func TestLogsOfPods(t *testing.T) {
	w := newWorld(t)
	k := w.serveLogs()
	id := w.Detached('1', []string{"Etcd.Quorum"})
	job := w.StartJob(id, "Etcd.Quorum")
	k.logs["one/check"] = "members: 3\n\x1b[2Jquorum: \tyes\nno newline"
	k.pod(job, "one", map[string]corev1.ContainerStatus{"check": terminated()})
	w.contains(w.call(exit.Ready, "logs", "Etcd.Quorum").Stdout, "members: 3\n") // the run in progress
	got := w.call(exit.Ready, "logs", id[:8], "Etcd.Quorum")
	if want := "members: 3\nquorum: \tyes\nno newline\n"; got.Stdout != want {
		t.Errorf("%q, want %q: the output without escape sequences", got.Stdout, want)
	}

	restarted := terminated()
	restarted.LastTerminationState.Terminated,
		restarted.RestartCount = &corev1.ContainerStateTerminated{ExitCode: 1, ContainerID: "containerd://0"}, 1
	k.logs["two/check"], k.logs["two/check before"] = "second\n", "first\n"
	k.pod(job, "two", map[string]corev1.ContainerStatus{"check": restarted, "helper": waiting("ImagePullBackOff", "429 from mirror")})
	got = w.call(exit.Ready, "logs", id, "Etcd.Quorum")
	w.contains(got.Stdout, "[one/check] no newline\n", "[two/check] first\n[two/check] second\n")
	w.contains(got.Stderr, "[two/check] output of the previous start:\n",
		"[two/helper] the container has not started: ImagePullBackOff: 429 from mirror\n")
}

func TestLogsAreFollowed(t *testing.T) {
	w := newWorld(t)
	k := w.serveLogs()
	id := w.Detached('1', []string{"Etcd.Quorum"})
	job := w.StartJob(id, "Etcd.Quorum")
	k.logs["one/check"], k.cut["one/check"] = "members: 3\nquorum: yes\n", len("members: 3\nquor")
	pod := k.pod(job, "one", map[string]corev1.ContainerStatus{"check": running()})
	var background sync.WaitGroup
	defer background.Wait()
	background.Go(func() {
		w.Until(func() bool { k.mutex.Lock(); defer k.mutex.Unlock(); return k.calls["one/check"] == 2 })
		k.setStates(pod, map[string]corev1.ContainerStatus{"check": terminated()})
		close(k.ended)
		w.complete(job)
	})
	got := w.call(exit.Ready, "logs", id, "Etcd.Quorum", "--follow")
	if want := "[one/check] members: 3\n[one/check] quorum: yes\n"; got.Stdout != want {
		t.Errorf("%q, want %q: each line once, although the connection broke", got.Stdout, want)
	}
}

// A check that has neither a Job nor a container that has started is awaited.
func TestLogsAwaitACheck(t *testing.T) {
	w := newWorld(t)
	k := w.serveLogs()
	close(k.ended)
	id := w.Detached('1', []string{"Etcd.Quorum"})
	following := program.Start(t, "logs", id, "Etcd.Quorum", "--follow")
	w.Until(func() bool {
		return strings.Contains(following.Stderr.String(), "Etcd.Quorum has not started; waiting for it")
	})
	job := w.StartJob(id, "Etcd.Quorum")
	k.logs["one/check"] = "quorum: yes\n"
	pod := k.pod(job, "one", map[string]corev1.ContainerStatus{"check": waiting("ContainerCreating", "")})
	w.Until(func() bool {
		return strings.Contains(following.Stderr.String(), "the container has not started: ContainerCreating")
	})
	k.setStates(pod, map[string]corev1.ContainerStatus{"check": terminated()})
	w.complete(job)
	if got := following.Wait(); got.Code != exit.Ready || got.Stdout != "[one/check] quorum: yes\n" {
		t.Errorf("exit code %d, %q, %s; want the output of the check", got.Code, got.Stdout, got.Stderr)
	}
}

// complete sets the status of the Job to complete.
func (w world) complete(job *batchv1.Job) {
	now := metav1.Now()
	job.Status.StartTime, job.Status.CompletionTime = &now, &now
	job.Status.Conditions = []batchv1.JobCondition{
		{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue, LastTransitionTime: now},
		{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: now},
	}
	if _, err := w.Client.BatchV1().Jobs(job.Namespace).UpdateStatus(w.t.Context(), job, metav1.UpdateOptions{}); err != nil {
		w.t.Error(err)
	}
}
