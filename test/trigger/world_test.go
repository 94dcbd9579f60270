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

// patience is more than any step of a test takes.
const patience = 2 * time.Minute

// world is a cluster that knows releases, and has no record.
type world struct {
	*zoo.World

	t       *testing.T
	client  kubernetes.Interface
	records *record.Store
	// images are the pull specs of the releases, by version.
	images map[string]string
}

// newWorld makes and signs a release for each version, whose checks end like that. None
// is offered or selected.
func newWorld(t *testing.T, releases map[string][]string) *world {
	t.Helper()
	w := &world{t: t, client: house.Client(t), images: map[string]string{}}
	w.records = record.New(w.client)
	for version, endings := range releases {
		animals := map[string]zoo.Animal{}
		for _, ending := range endings {
			animals[ending] = zoo.Animal{Ending: ending}
		}
		image, err := house.Push(t.Context(), version, animals)
		if err != nil {
			t.Fatal(err)
		}
		w.images[version] = image
	}
	w.World = house.Offer(t, maps.Clone(w.images), zoo.Namespace)
	w.offer()
	w.forget()
	return w
}

// forget deletes all records.
func (w *world) forget() {
	w.t.Helper()
	recorded := metav1.ListOptions{LabelSelector: record.Label}
	if err := w.client.CoreV1().ConfigMaps(record.Namespace).DeleteCollection(w.t.Context(), metav1.DeleteOptions{}, recorded); err != nil {
		w.t.Fatal(err)
	}
}

// offer has the cluster offer these versions and nothing else.
func (w *world) offer(versions ...string) {
	w.t.Helper()
	w.State.Available = map[string]string{}
	for _, version := range versions {
		w.State.Available[version] = w.images[version]
	}
	w.Apply(w.t)
}

// choose selects a version, as an administrator does; none withdraws the selection.
func (w *world) choose(version string) {
	w.t.Helper()
	w.State.Desired = nil
	if version != "" {
		w.State.Desired = &configv1.Update{Version: version, Image: w.images[version]}
	}
	w.Apply(w.t)
}

// await waits until the records of the runs are like that, and returns them.
func (w *world) await(what string, like func([]record.Record) bool) []record.Record {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
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
			if like(found) {
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
	w.t.Fatalf("the records do not show that %s; their verdicts are:\n%s", what, strings.Join(verdicts, ""))
	return nil
}

// summaries are the records in short: version, requester, phase and decision.
func summaries(records []record.Record) []string {
	var all []string
	for _, r := range records {
		all = append(all, strings.TrimSpace(strings.Join([]string{r.Target.Version, string(r.Requester), string(r.Phase), r.Decision}, " ")))
	}
	slices.Sort(all)
	return all
}

// awaitRuns waits until the summaries of the records are these.
func (w *world) awaitRuns(want ...string) []record.Record {
	w.t.Helper()
	return w.await(strings.Join(want, ", "), func(found []record.Record) bool { return slices.Equal(summaries(found), want) })
}

// awaitPods waits until that many checks are running.
func (w *world) awaitPods(count int) {
	w.t.Helper()
	err := wait.PollUntilContextTimeout(w.t.Context(), 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		pods, err := w.client.CoreV1().Pods(zoo.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "status.phase=Running"})
		return err == nil && len(pods.Items) >= count, nil
	})
	if err != nil {
		w.t.Fatalf("%d checks are not running: %v", count, err)
	}
}

// process is a controller that is running.
type process struct {
	t       *testing.T
	command *exec.Cmd
	log     *buffer
	metrics string
	ended   chan struct{}
}

// start starts a controller. It is ended with the test.
func (w *world) start(args ...string) *process {
	w.t.Helper()
	return w.startWith(local.Kubeconfig, args...)
}

// startWith starts a controller with a kubeconfig. It is ended with the test.
func (w *world) startWith(kubeconfig string, args ...string) *process {
	w.t.Helper()
	metrics := freeAddress(w.t)
	args = append([]string{
		"--namespace=" + record.Namespace, "--prometheus=" + monitoring, "--ahead-delay=0", "--health-probe-bind-address=0",
		"--metrics-bind-address=" + metrics, "--leader-elect-lease-duration=5s", "--leader-elect-renew-deadline=4s", "--leader-elect-retry-period=1s",
	}, args...)
	p := &process{t: w.t, log: &buffer{}, metrics: metrics, ended: make(chan struct{})}
	p.command = exec.Command(program(w.t), args...) //nolint:noctx // it is ended by signals
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

// signal ends the controller, and returns its exit code.
func (p *process) signal(signal os.Signal) int {
	p.t.Helper()
	_ = p.command.Process.Signal(signal)
	select {
	case <-p.ended:
	case <-time.After(patience):
		_ = p.command.Process.Kill()
		<-p.ended
		p.t.Errorf("the controller did not end after %v", signal)
	}
	return p.command.ProcessState.ExitCode()
}

// awaitMetric waits until the controller exports these lines, and returns all.
func (p *process) awaitMetric(lines ...string) string {
	p.t.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	var last string
	err := wait.PollUntilContextTimeout(context.Background(), 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
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

// program is the path of the controller.
func program(t *testing.T) string {
	t.Helper()
	binary, err := house.Binaries.Build(t.Context(), "cmd/preflight-controller")
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
