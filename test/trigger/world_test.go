package trigger_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/recordstore"
	"github.com/openshift/update-preflight/test/process"
	"github.com/openshift/update-preflight/test/prometheus"
	"github.com/openshift/update-preflight/test/zoo"
)

// timeout limits each wait of a test. A controller that ends before ends the wait.
const timeout = 5 * time.Minute

// world is the cluster with releases that it can offer, and without run records.
type world struct {
	*zoo.World

	t       *testing.T
	client  kubernetes.Interface
	records *recordstore.Store
	// images are the pull specs of the releases, by version.
	images map[string]string
	// monitoring is the URL of the Prometheus of the cluster.
	monitoring string
	// started are the controllers.
	started []*process.Process
}

// newWorld makes and signs a release for each version, with a check for each of its
// endings. None is offered or selected.
func newWorld(t *testing.T, releases map[string][]string) *world {
	t.Helper()
	w := &world{
		t: t, client: testCluster.Client(t), images: map[string]string{},
		monitoring: prometheus.Constant(t, http.StatusOK, `{"status":"success","data":{"alerts":[]}}`).URL,
	}
	w.records = recordstore.New(w.client)
	zoo.StartNode(t, local.Config)
	for version, endings := range releases {
		animals := map[string]zoo.Animal{}
		for _, ending := range endings {
			animals[ending] = zoo.Animal{Ending: ending, Simulated: true}
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

// while returns a context that ends with the time limit of a wait, or when a controller has
// ended by itself.
func (w *world) while() (context.Context, context.CancelFunc) {
	limited, cancel := context.WithTimeoutCause(w.t.Context(), timeout, fmt.Errorf("%s have passed", timeout))
	ctx, end := process.While(limited, w.started...)
	return ctx, func() { end(); cancel() }
}

// await waits until the run records are as expected, and returns them.
func (w *world) await(want string, expected func([]record.Record) bool) []record.Record {
	w.t.Helper()
	ctx, cancel := w.while()
	defer cancel()
	for ctx.Err() == nil {
		if found, ok := w.follow(ctx, expected); ok {
			return found
		}
	}
	w.t.Fatalf("the run records are not %q: %v\ntheir verdicts are:\n%s", want, context.Cause(ctx), w.verdicts())
	return nil
}

// follow returns the run records once they are as expected; ok is false if the watch of
// their changes has ended before.
func (w *world) follow(ctx context.Context, expected func([]record.Record) bool) (found []record.Record, ok bool) {
	w.t.Helper()
	changes, err := w.client.CoreV1().ConfigMaps(record.Namespace).Watch(ctx, metav1.ListOptions{LabelSelector: record.Label})
	if err != nil && ctx.Err() == nil {
		w.t.Fatal(err)
	}
	if err != nil {
		return nil, false
	}
	defer changes.Stop()
	for open := true; open; _, open = <-changes.ResultChan() {
		found, err := w.records.List(ctx)
		if err != nil {
			return nil, false
		}
		if expected(found) {
			return found, true
		}
	}
	return nil, false
}

// verdicts are those of all run records.
func (w *world) verdicts() string {
	w.t.Helper()
	headers, err := w.client.CoreV1().ConfigMaps(record.Namespace).List(w.t.Context(), metav1.ListOptions{LabelSelector: record.Label})
	if err != nil {
		w.t.Fatal(err)
	}
	var verdicts strings.Builder
	for _, header := range headers.Items {
		verdicts.WriteString(header.Data["verdict.json"])
	}
	return verdicts.String()
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

// awaitPod waits until a check is running.
func (w *world) awaitPod() {
	w.t.Helper()
	ctx, cancel := w.while()
	defer cancel()
	for ctx.Err() == nil {
		running, err := w.client.CoreV1().Pods(zoo.Namespace).Watch(ctx, metav1.ListOptions{FieldSelector: "status.phase=Running"})
		if err != nil && ctx.Err() == nil {
			w.t.Fatal(err)
		}
		if err != nil {
			break
		}
		_, found := <-running.ResultChan()
		running.Stop()
		if found {
			return
		}
	}
	w.t.Fatalf("no check is running: %v", context.Cause(ctx))
}

// controller is a running controller.
type controller struct {
	*process.Process

	t *testing.T
}

// start starts a controller, which is stopped at the end of the test.
func (w *world) start(args ...string) *controller {
	w.t.Helper()
	return w.startWith(local.Kubeconfig, args...)
}

// startWith starts a controller with a kubeconfig; it is stopped at the end of the test.
func (w *world) startWith(kubeconfig string, args ...string) *controller {
	w.t.Helper()
	path, err := program()
	if err != nil {
		w.t.Fatal(err)
	}
	args = append([]string{
		"--namespace=" + record.Namespace, "--prometheus=" + w.monitoring, "--ahead-delay=0", "--health-probe-bind-address=0",
		"--metrics-bind-address=127.0.0.1:0", "--leader-elect-lease-duration=5s", "--leader-elect-renew-deadline=4s",
		"--leader-elect-retry-period=1s",
	}, args...)
	command := exec.Command(path, args...) //nolint:noctx // it is stopped by signals
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	c := &controller{Process: process.Start(w.t, command), t: w.t}
	w.started = append(w.started, c.Process)
	w.t.Cleanup(func() {
		c.Stop(w.t, syscall.SIGTERM)
		if w.t.Failed() {
			w.t.Logf("log of the controller:\n%s", c.Stderr())
		}
	})
	return c
}

// awaitMetric waits until the controller exports these lines, and returns all metrics.
func (c *controller) awaitMetric(lines ...string) string {
	c.t.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	url := "https://" + c.Address(c.t) + "/metrics"
	var last string
	defer func() {
		if c.t.Failed() {
			c.t.Logf("the controller exports:\n%s", last)
		}
	}()
	c.Await(c.t, fmt.Sprintf("the metrics %q", lines), func(ctx context.Context) bool {
		text, err := get(ctx, client, url)
		last = string(text)
		return err == nil && !slices.ContainsFunc(lines, func(line string) bool { return !strings.Contains(last, line+"\n") })
	})
	return last
}

func get(ctx context.Context, client *http.Client, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return io.ReadAll(response.Body)
}
