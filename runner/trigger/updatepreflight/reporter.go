package updatepreflight

import (
	"context"
	"log/slog"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"github.com/sigstore/sigstore/pkg/signature"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/verdict/attestation"
	"github.com/openshift/update-preflight/runner/trigger/completion"
	"github.com/openshift/update-preflight/runner/trigger/projection"
	"github.com/openshift/update-preflight/runner/trigger/runplan"
)

// The times until the state of an update is read again.
const updatePause, updatedPause = time.Minute, 5 * time.Minute

// maxSigned bounds the signed verdicts that are kept.
const maxSigned = 2 * runplan.MaxRequests

// Reporter adds what the hub of a fleet reads of a requested preflight beside its verdict: the signed verdict, and
// whether the update to its target is complete. Its methods must not be called concurrently.
type Reporter struct {
	cluster *cluster.Cluster
	// key signs; nil signs nothing.
	key    signature.Signer
	logger *slog.Logger
	// signed are the verdicts that were signed, by run: a signature differs each time.
	signed map[string]string
	// present is the cluster as it was read for the observations of a pass.
	present *snapshot.Cluster
	// after is the judgement of the last update; nil for a cluster whose updates are not judged.
	after func(*configv1.ClusterVersion) afterupdate.Report
}

// NewReporter makes the Reporter of one cluster. Without a key, it signs nothing. after is the judgement of the last
// update; nil for a cluster whose updates are not judged.
func NewReporter(reached *cluster.Cluster, key signature.Signer, logger *slog.Logger, after func(*configv1.ClusterVersion) afterupdate.Report) *Reporter {
	return &Reporter{cluster: reached, key: key, logger: logger, signed: map[string]string{}, after: after}
}

// begin has what is read for the next observations read anew. Nil reads nothing.
func (r *Reporter) begin() {
	if r != nil {
		r.present = snapshot.Of(r.cluster)
	}
}

// Add adds to an observation of a subject, where an administrator requests it. It returns when it is to be made again;
// zero for the next event. Nil adds nothing.
func (r *Reporter) Add(ctx context.Context, o *projection.Observation, subject runplan.Subject, state runplan.State) time.Time {
	if r == nil || subject.Object.Owned() {
		return time.Time{}
	}
	if o.Verdict != nil {
		o.Attestation = r.sign(*o.Verdict)
	}
	if !subject.Accepted {
		return time.Time{}
	}
	r.judge(o, subject, state)
	updated := completion.Of(completion.Read(ctx, r.present, nil, state.ClusterVersion, state.Now))
	o.Updated = &updated
	if updated.Status == metav1.ConditionTrue {
		return state.Now.Add(updatedPause)
	}
	return state.Now.Add(updatePause)
}

// judge adds the judgement of the last update, if that is the one to the target.
func (r *Reporter) judge(o *projection.Observation, subject runplan.Subject, state runplan.State) {
	if r.after == nil || state.ClusterVersion == nil {
		return
	}
	judged := r.after(state.ClusterVersion)
	if of := (update.Release{Version: judged.Update.To, Image: judged.Update.Image}); of.Digest() != "" && of.Digest() == subject.Target.Digest() {
		o.After = &judged
	}
}

// sign is the envelope of the signed verdict of a report; empty where it is not signed.
func (r *Reporter) sign(decided report.Report) string {
	id := decided.Run.ID
	if r.key == nil || id == "" {
		return ""
	}
	if text, known := r.signed[id]; known {
		return text
	}
	if len(r.signed) >= maxSigned {
		clear(r.signed)
	}
	text := ""
	stated, err := attestation.Of(decided)
	if err == nil {
		var envelope []byte
		if envelope, err = attestation.Sign(stated, r.key); err == nil {
			text = string(envelope)
		}
	}
	if err != nil {
		r.logger.Warn("the verdict is not signed", "run", id, "error", err)
	}
	r.signed[id] = text
	return text
}
