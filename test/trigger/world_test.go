package trigger_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/test/zoo"
)

// timeout limits each wait of a test.
const timeout = 5 * time.Minute

// world is the cluster with releases that it can offer, and without run records.
type world struct {
	*zoo.World

	t       *testing.T
	client  kubernetes.Interface
	records *record.Store
	// images are the pull specs of the releases, by version.
	images map[string]string
}

// newWorld makes and signs a release for each version, with a check for each of its
// endings. None is offered or selected.
func newWorld(t *testing.T, releases map[string][]string) *world {
	t.Helper()
	w := &world{t: t, client: testCluster.Client(t), images: map[string]string{}}
	w.records = record.New(w.client)
	for version, endings := range releases {
		animals := map[string]zoo.Animal{}
		for _, ending := range endings {
			animals[ending] = zoo.Animal{Ending: ending}
		}
		image, err := testCluster.Push(t.Context(), version, animals)
		if err != nil {
			t.Fatal(err)
		}
		w.images[version] = image
	}
	w.World = testCluster.Offer(t, maps.Clone(w.images), zoo.Namespace)
	w.offer()
	w.deleteRecords()
	return w
}

// deleteRecords deletes all run records.
func (w *world) deleteRecords() {
	w.t.Helper()
	recorded := metav1.ListOptions{LabelSelector: record.Label}
	if err := w.client.CoreV1().ConfigMaps(record.Namespace).DeleteCollection(w.t.Context(), metav1.DeleteOptions{}, recorded); err != nil {
		w.t.Fatal(err)
	}
}

// offer makes the cluster offer exactly these versions.
func (w *world) offer(versions ...string) {
	w.t.Helper()
	w.State.Available = map[string]string{}
	for _, version := range versions {
		w.State.Available[version] = w.images[version]
	}
	w.Apply(w.t)
}

// selectVersion selects a version, as an administrator does; "" withdraws the selection.
func (w *world) selectVersion(version string) {
	w.t.Helper()
	w.State.Desired = nil
	if version != "" {
		w.State.Desired = &configv1.Update{Version: version, Image: w.images[version]}
	}
	w.Apply(w.t)
}

// await waits until the run records are as expected, and returns them.
func (w *world) await(want string, expected func([]record.Record) bool) []record.Record {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), timeout)
	defer cancel()
	for ctx.Err() == nil {
		changes, err := w.client.CoreV1().ConfigMaps(record.Namespace).Watch(ctx, metav1.ListOptions{LabelSelector: record.Label})
		if err != nil {
			w.t.Fatal(err)
		}
		for {
			found, err := w.records.List(ctx)
			if err != nil {
				break
			}
			if expected(found) {
				changes.Stop()
				return found
			}
			if _, open := <-changes.ResultChan(); !open {
				break
			}
		}
		changes.Stop()
	}
	headers, err := w.client.CoreV1().ConfigMaps(record.Namespace).List(w.t.Context(), metav1.ListOptions{LabelSelector: record.Label})
	if err != nil {
		w.t.Fatal(err)
	}
	var verdicts []string
	for _, header := range headers.Items {
		verdicts = append(verdicts, header.Data["verdict.json"])
	}
	w.t.Fatalf("the run records are not %q; their verdicts are:\n%s", want, strings.Join(verdicts, ""))
	return nil
}

// summaries returns version, requester, phase and decision of each record, sorted.
func summaries(records []record.Record) []string {
	var all []string
	for _, r := range records {
		all = append(all, strings.TrimSpace(strings.Join([]string{r.Target.Version, string(r.Requester), string(r.Phase), r.Decision}, " ")))
	}
	slices.Sort(all)
	return all
}

// awaitRuns waits until the records have exactly these summaries, and returns them.
func (w *world) awaitRuns(want ...string) []record.Record {
	w.t.Helper()
	return w.await(strings.Join(want, ", "), func(found []record.Record) bool { return slices.Equal(summaries(found), want) })
}

// awaitPods waits until at least that many checks are running.
func (w *world) awaitPods(count int) {
	w.t.Helper()
	err := wait.PollUntilContextTimeout(w.t.Context(), 100*time.Millisecond, timeout, true, func(ctx context.Context) (bool, error) {
		pods, err := w.client.CoreV1().Pods(zoo.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "status.phase=Running"})
		return err == nil && len(pods.Items) >= count, nil
	})
	if err != nil {
		w.t.Fatalf("fewer than %d checks are running: %v", count, err)
	}
}

// process is a running controller.
type process struct {
	t       *testing.T
	command *exec.Cmd
	log     *buffer
	metrics string
	ended   chan struct{}
}

// start starts a controller, which is stopped at the end of the test.
func (w *world) start(args ...string) *process {
	w.t.Helper()
	return w.startWith(local.Kubeconfig, args...)
}

// startWith starts a controller with a kubeconfig; it is stopped at the end of the test.
func (w *world) startWith(kubeconfig string, args ...string) *process {
	w.t.Helper()
	metrics := freeAddress(w.t)
	args = append([]string{
		"--namespace=" + record.Namespace, "--prometheus=" + monitoring, "--ahead-delay=0", "--health-probe-bind-address=0",
		"--metrics-bind-address=" + metrics, "--leader-elect-lease-duration=5s", "--leader-elect-renew-deadline=4s", "--leader-elect-retry-period=1s",
	}, args...)
	p := &process{t: w.t, log: &buffer{}, metrics: metrics, ended: make(chan struct{})}
	p.command = exec.Command(program(w.t), args...) //nolint:noctx // it is stopped by signals
	p.command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	p.command.Stderr = p.log
	if err := p.command.Start(); err != nil {
		w.t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		_ = p.command.Wait()
	}()
	w.t.Cleanup(func() {
		p.signal(syscall.SIGTERM)
		if w.t.Failed() {
			w.t.Logf("log of the controller:\n%s", p.log)
		}
	})
	return p
}

// signal sends a signal that ends the controller, and returns its exit code.
func (p *process) signal(signal os.Signal) int {
	p.t.Helper()
	_ = p.command.Process.Signal(signal)
	select {
	case <-p.ended:
	case <-time.After(timeout):
		_ = p.command.Process.Kill()
		<-p.ended
		p.t.Errorf("the controller did not end within %s after %v", timeout, signal)
	}
	return p.command.ProcessState.ExitCode()
}

// awaitMetric waits until the controller exports these lines, and returns all metrics.
func (p *process) awaitMetric(lines ...string) string {
	p.t.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	var last string
	err := wait.PollUntilContextTimeout(context.Background(), 100*time.Millisecond, timeout, true, func(ctx context.Context) (bool, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+p.metrics+"/metrics", nil)
		if err != nil {
			return false, err
		}
		response, err := client.Do(request)
		if err != nil {
			return false, nil
		}
		defer response.Body.Close() //nolint:errcheck // nothing was written
		text, err := io.ReadAll(response.Body)
		last = string(text)
		return err == nil && !slices.ContainsFunc(lines, func(line string) bool { return !strings.Contains(last, line+"\n") }), nil
	})
	if err != nil {
		p.t.Fatalf("the controller does not export %q: %v\n%s", lines, err, last)
	}
	return last
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it returns at once
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // nothing was written
	return listener.Addr().String()
}

// program builds the controller, and returns its path.
func program(t *testing.T) string {
	t.Helper()
	binary, err := testCluster.Binaries.Build(t.Context(), "cmd/preflight-controller")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "preflight-controller")
	if err := os.WriteFile(path, binary, 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// buffer is the output of a process.
type buffer struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

// Write implements io.Writer.
func (b *buffer) Write(p []byte) (int, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.text.Write(p)
}

// String implements fmt.Stringer.
func (b *buffer) String() string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.text.String()
}
