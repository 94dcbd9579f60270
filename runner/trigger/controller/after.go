package controller

import (
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"

	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/inspection"
	"github.com/openshift/update-preflight/runner/trigger/announcement"
	"github.com/openshift/update-preflight/runner/trigger/followup"
)

// after has the last update judged, and states the judgement: in the metrics, and in an event about ClusterVersion.
type after struct {
	follower *followup.Follower
	metrics  *announcement.Metrics
	recorder events.EventRecorder
	// changed has the statuses of the UpdatePreflights written.
	changed func()
	// began is when the process began, by the clock of the cluster: an event is only about a later judgement.
	began time.Time
	// history is that of ClusterVersion for which the follower was woken. Only Reconcile uses it.
	history string
}

func newAfter(c *cluster.Cluster, options Options, metrics *announcement.Metrics, recorder events.EventRecorder, changed func()) *after {
	a := &after{metrics: metrics, recorder: recorder, changed: changed, began: c.Now().Truncate(time.Second)}
	a.follower = followup.New(c, followup.Options{
		Inspection: inspection.Options{Watched: true, Monitoring: options.Monitoring, Settings: options.Run.Settings()},
		Pauses:     options.After, Logger: options.Logger, Changed: a.state,
	})
	return a
}

// observe has the last update judged anew when the history of ClusterVersion has changed.
func (a *after) observe(version *configv1.ClusterVersion) {
	history := ""
	if past := version.Status.History; len(past) > 0 {
		history = fmt.Sprint(past[0].State, past[0].Image, past[0].StartedTime, past[0].CompletionTime)
	}
	if history != a.history {
		a.history = history
		a.follower.Wake()
	}
}

// maxNote bounds the text of an event, in bytes: the API server accepts 1024.
const maxNote = 800

// state states a judgement.
func (a *after) state(made afterupdate.Report) {
	a.metrics.SetAfter(made.Update.To, made.Decision)
	a.changed()
	if judged, err := time.Parse(time.RFC3339, made.Samples.Last); err != nil || judged.Before(a.began) || !made.Decision.Final() {
		return
	}
	kind := corev1.EventTypeWarning
	if made.Decision == afterupdate.Good {
		kind = corev1.EventTypeNormal
	}
	about := &configv1.ClusterVersion{}
	about.Name = name
	about.SetGroupVersionKind(configv1.GroupVersion.WithKind("ClusterVersion"))
	a.recorder.Eventf(about, nil, kind, "Update"+string(made.Decision), "AfterUpdate", "%s: %s", words.Line(made.Update.To, maxNote), words.Line(made.Message, maxNote/2))
}
