package cvo

import (
	"fmt"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
)

// HasProcessed reports whether the status of ClusterVersion is of its present spec.
//
// CVO raises status.observedGeneration when it applies the release next, which may be
// minutes after a change of the spec that does not change the release (pkg/cvo/status.go,
// pkg/cvo/sync_worker.go). It reports an update that is selected before that: the condition
// ReleaseAccepted then names the update, in a status that was written after the last change
// of the spec.
func HasProcessed(clusterVersion *configv1.ClusterVersion) bool {
	if clusterVersion.Status.ObservedGeneration >= clusterVersion.Generation {
		return true
	}
	// The times have no fraction of a second: two writes in one second have no known order.
	return namesSelected(clusterVersion) && lastWrite(clusterVersion, isStatus).After(SpecChange(clusterVersion))
}

// namesSelected reports whether the condition ReleaseAccepted is about the update that is
// selected; false if none is.
func namesSelected(clusterVersion *configv1.ClusterVersion) bool {
	desired := clusterVersion.Spec.DesiredUpdate
	if desired == nil || desired.Version == "" && desired.Image == "" {
		return false
	}
	name := fmt.Sprintf("image=%q", desired.Image)
	if desired.Image == "" {
		name = fmt.Sprintf("version=%q image=", desired.Version)
	}
	for _, condition := range clusterVersion.Status.Conditions {
		if condition.Type == "ReleaseAccepted" {
			return strings.Contains(condition.Message, name)
		}
	}
	return false
}

// SpecChange is when the spec was last changed, by the clock of the API server: no later
// than the last change of the metadata or spec by any client.
func SpecChange(clusterVersion *configv1.ClusterVersion) time.Time {
	return lastWrite(clusterVersion, func(subresource string) bool { return subresource == "" })
}

func isStatus(subresource string) bool { return subresource == "status" }

// lastWrite is when a client last changed the object through these subresources; its
// creation if none did.
func lastWrite(clusterVersion *configv1.ClusterVersion, through func(subresource string) bool) time.Time {
	last := clusterVersion.CreationTimestamp.Time
	for _, manager := range clusterVersion.ManagedFields {
		if through(manager.Subresource) && manager.Time != nil && manager.Time.After(last) {
			last = manager.Time.Time
		}
	}
	return last
}
