package followup_test

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/runner/inspection"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/baselinestore"
	"github.com/openshift/update-preflight/runner/record/recordformat"
	"github.com/openshift/update-preflight/runner/trigger/followup"
	"github.com/openshift/update-preflight/test/after"
	"github.com/openshift/update-preflight/test/apiserver"
	"github.com/openshift/update-preflight/test/transport"
)

// limit bounds each wait.
const limit = time.Minute

// world is a cluster whose update has ended.
type world struct {
	t       *testing.T
	cluster *cluster.Cluster
	run     string
	options inspection.Options
	server  *apiserver.Server
	// judged is a judgement of the update.
	judged afterupdate.Report
}

func updated(t *testing.T, changes ...after.Case) world {
	t.Helper()
	state := after.New(time.Now())
	before := state.Clone()
	state.Update()
	for _, each := range changes {
		each.Apply(state)
	}
	server, run := state.Recorded(t, before)
	connected, err := cluster.Connect(server.Config(), "test")
	if err != nil {
		t.Fatal(err)
	}
	return world{
		t: t, cluster: connected, run: run, options: inspection.Options{Monitoring: state.Monitoring(t)}, server: server,
		judged: state.Judge(t, before.Baseline(t)),
	}
}

// follow judges until a decision is one of these, and returns all that differed.
func (w world) follow(until ...afterupdate.Decision) []afterupdate.Report {
	w.t.Helper()
	changes := make(chan afterupdate.Report, 100)
	follower := followup.New(w.cluster, followup.Options{
		Inspection: w.options, Pauses: followup.Pauses{Settling: 10 * time.Millisecond, Decided: time.Hour},
		Logger: slog.New(slog.DiscardHandler), Changed: func(judged afterupdate.Report) { changes <- judged },
	})
	ctx, cancel := context.WithTimeout(w.t.Context(), limit)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- follower.Start(ctx) }()
	var all []afterupdate.Report
	for {
		select {
		case judged := <-changes:
			all = append(all, judged)
			if slices.Contains(until, judged.Decision) {
				cancel()
				if err := <-ended; err != nil {
					w.t.Error(err)
				}
				return all
			}
		case <-ctx.Done():
			w.t.Fatalf("no decision after %d changes: %v", len(all), ctx.Err())
		}
	}
}

func (w world) stored() afterupdate.Decision {
	w.t.Helper()
	found, ok, err := baselinestore.New(w.cluster.Kubernetes).Judgement(w.t.Context(), w.run)
	if err != nil {
		w.t.Fatal(err)
	}
	if !ok {
		return ""
	}
	return found.Report.Decision
}

// An update is judged by itself, and the judgement is stored; the next process takes it over.
func TestGood(t *testing.T) {
	w := updated(t)
	all := w.follow(afterupdate.Good)
	if first := all[0].Decision; first != afterupdate.Settling {
		t.Errorf("after one sample the decision is %s", first)
	}
	last := all[len(all)-1]
	if last.Update.Run != w.run || w.stored() != afterupdate.Good {
		t.Errorf("run %s, stored %q", last.Update.Run, w.stored())
	}
	if again := w.follow(afterupdate.Good); len(again) != 1 || again[0].Samples.Last != last.Samples.Last {
		t.Errorf("another process judged again: %d changes", len(again))
	}
}

// What is worse is stated, and stored.
func TestRegressed(t *testing.T) {
	w := updated(t, after.Regressions()[2])
	all := w.follow(afterupdate.Regressed)
	if last := all[len(all)-1]; len(last.Regressions) != 1 || w.stored() != afterupdate.Regressed {
		t.Errorf("stored %q: %+v", w.stored(), last.Regressions)
	}
}

// Two processes that judge at the same time store one judgement.
func TestTwo(t *testing.T) {
	w := updated(t)
	done := make(chan []afterupdate.Report, 1)
	go func() { done <- w.follow(afterupdate.Good) }()
	w.follow(afterupdate.Good)
	<-done
	all, err := baselinestore.New(w.cluster.Kubernetes).Judgements(t.Context())
	if err != nil || len(all) != 1 || all[0].Report.Decision != afterupdate.Good {
		t.Errorf("%d judgements: %v", len(all), err)
	}
}

// store stores a judgement of the update.
func (w world) store(decision afterupdate.Decision) {
	w.t.Helper()
	w.judged.Decision, w.judged.Message = decision, "the message of "+string(decision)
	if err := baselinestore.New(w.cluster.Kubernetes).PutJudgement(w.t.Context(), w.run, w.judged); err != nil {
		w.t.Fatal(err)
	}
}

// What is stored is shown by a new process, also when the update is not judged any more.
func TestStored(t *testing.T) {
	const late = 26 * time.Hour
	for name, tc := range map[string]struct {
		reason string
		// stored is empty for no judgement.
		stored, want afterupdate.Decision
		later        time.Duration
	}{
		"Good":      {reason: "a new process takes it over", stored: afterupdate.Good, want: afterupdate.Good},
		"GoodLate":  {reason: "a wave that was finished stays finished", stored: afterupdate.Good, want: afterupdate.Good, later: late},
		"Regressed": {reason: "the first look of a new process does not hide it", stored: afterupdate.Regressed, want: afterupdate.Regressed},
		"RegressedLate": {
			reason: "a gate that is closed does not open by itself", stored: afterupdate.Regressed, want: afterupdate.Regressed,
			later: late,
		},
		"RolledBack": {reason: "it is final", stored: afterupdate.RolledBack, want: afterupdate.RolledBack, later: late},
		"NoneLate":   {reason: "later changes have other causes, and it was never judged", want: afterupdate.Undecided, later: late},
	} {
		t.Run(name, func(t *testing.T) {
			w := updated(t)
			if tc.stored != "" {
				w.store(tc.stored)
			}
			var err error
			if tc.later > 0 {
				w.cluster, err = cluster.ConnectAt(w.server.Config(), "test", time.Now().Add(tc.later))
			}
			if err != nil {
				t.Fatal(err)
			}
			if all := w.follow(tc.want); len(all) != 1 || tc.stored != "" && all[0].Message != "the message of "+string(tc.stored) {
				t.Errorf("%s: %d changes, the last one is %+v", tc.reason, len(all), all[len(all)-1])
			}
		})
	}
}

// Before the store was read, and when another update has begun, an update is neither good nor without a judgement: a gate
// would count it.
func TestNotReadYet(t *testing.T) {
	w := updated(t)
	w.store(afterupdate.Good)
	version, err := w.cluster.OpenShift.ConfigV1().ClusterVersions().Get(t.Context(), "version", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	shown := make(chan afterupdate.Report, 1)
	follower := followup.New(w.cluster, followup.Options{
		Inspection: w.options, Pauses: followup.Standard(),
		Logger: slog.New(slog.DiscardHandler), Changed: func(judged afterupdate.Report) { shown <- judged },
	})
	if got := follower.Latest(version); got.Decision != afterupdate.Settling || got.Update.Image != version.Status.History[0].Image {
		t.Errorf("before the first look it is %+v", got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- follower.Start(ctx) }()
	select {
	case <-shown:
	case <-ctx.Done():
		t.Fatal(ctx.Err())
	}
	if got := follower.Latest(version); got.Decision != afterupdate.Good {
		t.Errorf("after the first look it is %+v", got)
	}
	next := configv1.UpdateHistory{State: configv1.PartialUpdate, Version: "4.18.3", Image: "release@next", StartedTime: metav1.Now()}
	version.Status.History = append([]configv1.UpdateHistory{next}, version.Status.History...)
	if got := follower.Latest(version); got.Decision != afterupdate.Settling || got.Update.To != next.Version {
		t.Errorf("when another update has begun it is %+v", got)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// What was shown is Unknown when the judgement is deleted.
func TestDeleted(t *testing.T) {
	w := updated(t)
	w.store(afterupdate.Good)
	w.server.Remove(t, record.Namespace, recordformat.HeaderName(w.run)+"-afterupdate")
	late, err := cluster.ConnectAt(w.server.Config(), "test", time.Now().Add(48*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	w.cluster = late
	if all := w.follow(afterupdate.Undecided); len(all) != 1 {
		t.Errorf("%+v", all)
	}
}

// An update that stays Regressed is stated once, however often the cluster is read.
func TestQuiet(t *testing.T) {
	w := updated(t, after.Regressions()[2])
	const looks = 40
	read := make(chan struct{}, 10*looks)
	config := w.server.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return transport.Func(func(r *http.Request) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, "/clusterversions/version") {
				select {
				case read <- struct{}{}:
				default:
				}
			}
			return next.RoundTrip(r)
		})
	})
	var err error
	if w.cluster, err = cluster.Connect(config, "test"); err != nil {
		t.Fatal(err)
	}
	stated := make(chan afterupdate.Report, looks)
	follower := followup.New(w.cluster, followup.Options{
		Inspection: w.options, Pauses: followup.Pauses{Settling: time.Millisecond, Decided: time.Millisecond},
		Logger: slog.New(slog.DiscardHandler), Changed: func(judged afterupdate.Report) { stated <- judged },
	})
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- follower.Start(ctx) }()
	for range looks {
		select {
		case <-read:
		case <-ctx.Done():
			t.Fatal("the cluster is not read")
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	close(stated)
	regressed := 0
	for each := range stated {
		if each.Decision == afterupdate.Regressed {
			regressed++
		}
	}
	if regressed != 1 {
		t.Errorf("Regressed was stated %d times", regressed)
	}
}
