// Package launch answers: how do a release's preflight manifests become Jobs
// in this cluster, and go again?
//
// [Build] is pure: it makes a [Plan] of a release, and refuses what a preflight
// must not do. A [Launcher] takes the plan to a cluster: Validate has the API
// server look at every object before the first is created, Prepare creates the
// temporary copies of the supporting objects, Start creates one Job, and
// Cleanup deletes everything that carries the label of a run, knowing nothing
// but its ID.
//
// The names of all objects follow from the release and the ID of the run. So a
// runner that takes over the run of another one does what that did: what is
// there already is adopted.
package launch

import (
	"strings"
	"time"

	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/runner/label"
)

// AnnotationCheck holds the name of the check, on its Job: names of Jobs are cut,
// and those of checks are made of what is not on the Job.
const AnnotationCheck = label.Prefix + "check"

const (
	// annotationResult is set by authors: with the value "framed" the check
	// promises a result of the SDK's form.
	annotationResult = label.Prefix + "result"
	resultFramed     = "framed"
	// annotationSerial is set by authors: of the Jobs of a component that have
	// it with the value "true", one runs at a time. Any other value means no.
	annotationSerial = label.Prefix + "serial"
	serialTrue       = "true"

	annotationStart    = label.Prefix + "start-time"
	annotationDigest   = label.Prefix + "payload-digest"
	annotationManifest = label.Prefix + "manifest"
	annotationVersion  = label.Prefix + "release-version"
	annotationTool     = label.Prefix + "tool-version"
)

// Run is one preflight of one target on one cluster.
type Run struct {
	// ID is a UUID.
	ID string
	// From is the cluster's version, Target the release that is asked about.
	From   string
	Target update.Release
	// StartTime and Deadline bound the run.
	StartTime, Deadline time.Time
	// ToolVersion is recorded on what the run creates.
	ToolVersion string
}

// Suffix is what makes the names of a run's objects unique: the first ten hex
// digits of its ID.
func (r Run) Suffix() string { return label.Suffix(r.ID) }

// labels are the author's, and over them the run's. Those that the Job
// controller sets, or that only a runner may set, are not the author's to give.
func (r Run) labels(author map[string]string, component string) map[string]string {
	labels := map[string]string{}
	for key, value := range author {
		if !reserved(key) {
			labels[key] = value
		}
	}
	labels[label.Run] = r.ID
	labels[label.Release] = label.ReleaseValue(r.Target.Digest())
	labels[label.Component] = labelValue(component)
	return labels
}

// reserved is true for the labels of the Job controller (k8s.io/api/batch/v1,
// JobNameLabel and its neighbours) and our own.
func reserved(key string) bool {
	return key == "controller-uid" || key == "job-name" ||
		strings.HasPrefix(key, "batch.kubernetes.io/") || strings.HasPrefix(key, label.Prefix)
}

// annotations are the author's, and over them where the object comes from.
func (r Run) annotations(author map[string]string, file string) map[string]string {
	annotations := map[string]string{}
	for key, value := range author {
		if key == annotationResult || key == annotationSerial || !strings.HasPrefix(key, label.Prefix) {
			annotations[key] = value
		}
	}
	annotations[annotationStart] = r.StartTime.UTC().Format(time.RFC3339)
	annotations[annotationDigest] = r.Target.Digest()
	annotations[annotationManifest] = file
	annotations[annotationVersion] = r.Target.Version
	if r.ToolVersion != "" {
		annotations[annotationTool] = r.ToolVersion
	}
	return annotations
}
