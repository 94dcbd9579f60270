package after

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/afterupdate/observation"
	"github.com/openshift/update-preflight/collector/baseline"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/runner/record/baselinestore"
	"github.com/openshift/update-preflight/test/apiserver"
	"github.com/openshift/update-preflight/test/records"
)

// Server serves the objects of the cluster as they are.
func (w *World) Server(tb testing.TB) *apiserver.Server {
	tb.Helper()
	server := apiserver.Start(tb)
	for kind, served := range w.kinds {
		server.ServeAs(served.resource(kind), served.Status && !served.Bare)
	}
	for _, object := range w.Objects(tb) {
		server.Add(tb, object)
	}
	return server
}

// Monitoring serves the alerts that are firing.
func (w *World) Monitoring(tb testing.TB) monitoring.Finder {
	tb.Helper()
	alerts := []any{}
	for _, each := range w.alerts {
		labels := map[string]string{"alertname": each.Name, "severity": each.Severity}
		if each.Namespace != "" {
			labels["namespace"] = each.Namespace
		}
		if each.Pod != "" {
			labels["pod"] = each.Pod
		}
		alerts = append(alerts, map[string]any{
			"labels": labels, "annotations": map[string]string{"summary": each.Name}, "state": "firing",
			"activeAt": each.Since.Format(time.RFC3339), "value": "1",
		})
	}
	served := httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, _ *http.Request) {
		if err := json.NewEncoder(response).Encode(map[string]any{"status": "success", "data": map[string]any{"alerts": alerts}}); err != nil {
			tb.Error(err)
		}
	}))
	tb.Cleanup(served.Close)
	return func(context.Context) (*rest.Config, error) { return &rest.Config{Host: served.URL}, nil }
}

// Observe reads the cluster at times before noon, as the program does.
func (w *World) Observe(tb testing.TB, before ...time.Duration) []observation.Observation {
	tb.Helper()
	server, find := w.Server(tb), w.Monitoring(tb)
	var all []observation.Observation
	for _, each := range before {
		connected, err := cluster.ConnectAt(server.Config(), "test", w.noon.Add(-each))
		if err != nil {
			tb.Fatal(err)
		}
		all = append(all, look(tb, connected, scene.Settings{Estate: w.estateOf(tb, connected)}, find))
	}
	return all
}

// Look reads a cluster as of a time, as the program does.
func Look(tb testing.TB, config *rest.Config, at time.Time, find monitoring.Finder) observation.Observation {
	tb.Helper()
	connected, err := cluster.ConnectAt(config, "test", at)
	if err != nil {
		tb.Fatal(err)
	}
	return look(tb, connected, scene.Settings{}, find)
}

func look(tb testing.TB, connected *cluster.Cluster, settings scene.Settings, find monitoring.Finder) observation.Observation {
	tb.Helper()
	s, err := scene.Open(tb.Context(), connected, settings, access.Needs{})
	if err != nil {
		tb.Fatal(err)
	}
	seen, err := observation.Of(tb.Context(), s, monitoring.New(find, monitoring.DefaultTimeout), nil)
	if err != nil {
		tb.Fatal(err)
	}
	return seen
}

// Baseline is the state of the cluster four hours before noon, as a run stores it.
func (w *World) Baseline(tb testing.TB) *baseline.State {
	tb.Helper()
	return Stored(tb, w.Observe(tb, 4*time.Hour)[0].State)
}

// Stored is a state as a run stores it.
func Stored(tb testing.TB, taken baseline.State) *baseline.State {
	tb.Helper()
	packed, err := taken.Pack()
	if err != nil {
		tb.Fatal(err)
	}
	state, err := baseline.Unpack(packed)
	if err != nil {
		tb.Fatal(err)
	}
	return &state
}

// Judge judges the update by three looks in the 70 minutes before noon, against a baseline.
func (w *World) Judge(tb testing.TB, before *baseline.State) afterupdate.Report {
	tb.Helper()
	return Judge(before, w.Observe(tb, 70*time.Minute, 30*time.Minute, 0))
}

// Judge judges an update by looks at the cluster, against a baseline.
func Judge(before *baseline.State, looks []observation.Observation) afterupdate.Report {
	var course afterupdate.Course
	for _, seen := range looks {
		course = course.And(before, seen.Sample(before, nil))
	}
	last := looks[len(looks)-1]
	return afterupdate.Judge(afterupdate.Question{Cluster: last.Cluster, Run: "run", Change: last.Change, Before: before}, course)
}

// JudgeApart is Judge by looks of separate processes: each continues what the one before has stored.
func JudgeApart(tb testing.TB, before *baseline.State, looks []observation.Observation) afterupdate.Report {
	tb.Helper()
	var course afterupdate.Course
	for _, seen := range looks[:len(looks)-1] {
		text, err := course.And(before, seen.Sample(before, nil)).Pack()
		if err != nil {
			tb.Fatal(err)
		}
		past, err := afterupdate.UnpackPast(text)
		if err != nil {
			tb.Fatal(err)
		}
		course = afterupdate.Resume(past)
	}
	last := looks[len(looks)-1]
	course = course.And(before, last.Sample(before, nil))
	return afterupdate.Judge(afterupdate.Question{Cluster: last.Cluster, Run: "run", Change: last.Change, Before: before}, course)
}

// Recorded serves the cluster as it is now, with a run that stored its baseline four hours before noon: that of from,
// the cluster before its update. Its ID is returned.
func (w *World) Recorded(tb testing.TB, from *World) (server *apiserver.Server, run string) {
	tb.Helper()
	server = w.Server(tb)
	recorded := records.In(tb, server.Config())
	run = recorded.Completed('b', report.Report{Verdict: verdict.Verdict{Decision: verdict.Ready}}, nil)
	if err := baselinestore.New(recorded.Client).Put(tb.Context(), run, *from.Baseline(tb), baselinestore.Plain); err != nil {
		tb.Fatal(err)
	}
	return server, run
}

// Newest creates an object at noon, by which an archive has its time.
func (w *World) Newest() {
	w.Set(Ref{Kind: "Namespace", Name: "newest"}, `{"metadata":{"creationTimestamp":"`+w.At(0)+`"}}`)
}

// Archive writes the cluster as lists of objects, for --archive.
func (w *World) Archive(tb testing.TB, file string) {
	tb.Helper()
	items := []any{}
	for _, object := range w.Objects(tb) {
		items = append(items, object.Object)
	}
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		tb.Fatal(err)
	}
}
