// Package gate answers: which conditions stand between this cluster and the
// target until somebody fixes or acknowledges them? Each gate is one file.
// Names are the risk names of the cluster-version operator (CVO).
package gate

import (
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/update"
)

// Checks are all gates, for one update of one cluster. Here belongs a new one.
func Checks(cluster *snapshot.Cluster, u update.Update) []check.Check {
	return []check.Check{
		AdminAck(cluster, u),
	}
}
