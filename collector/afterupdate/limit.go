package afterupdate

import (
	"slices"
	"time"

	"github.com/openshift/update-preflight/collector/afterupdate/regression"
	"github.com/openshift/update-preflight/collector/baseline"
	"github.com/openshift/update-preflight/collector/settling"
)

// limits are how long a problem of a kind has to last before it counts, the reason "" for all others.
//
// Those of operators are of package settling, and those of nodes the limits by which "oc adm upgrade status" reports an error (openshift/oc,
// pkg/cli/admin/upgrade/status); that of a drain is the one of the alert MCCDrainError; those of workloads are of
// the alerts KubePodNotReady (15 minutes) and KubePodCrashLooping (10 minutes); a CertificateSigningRequest is
// approved within minutes. Containers that restart until they reach what they depend on do so for some minutes after a
// reboot, and count as Restarting for 15 more.
func limits() map[baseline.Kind]map[string]time.Duration {
	workload := map[string]time.Duration{"": 15 * time.Minute, "ContainerCreating": 10 * time.Minute, "CrashLoopBackOff": 10 * time.Minute, "CreateContainerError": 10 * time.Minute, "FailedCreate": 10 * time.Minute, "ImagePullBackOff": 10 * time.Minute, "ProgressDeadlineExceeded": 0, "Restarting": 30 * time.Minute, regression.Rolled: 0}
	return map[baseline.Kind]map[string]time.Duration{
		baseline.ClusterVersion:        {"": 0, "Failing": settling.MaxFailing},
		baseline.ClusterOperator:       {"": settling.MaxDegraded, "Unavailable": settling.MaxUnavailable, "OutdatedVersion": time.Hour},
		baseline.MachineConfigPool:     {"": 20 * time.Minute, "NotUpdated": time.Hour},
		baseline.Node:                  {"": 20 * time.Minute, "OutdatedConfig": time.Hour, "Draining": time.Hour},
		baseline.MachineSet:            {"": 30 * time.Minute},
		baseline.APIService:            {"": 5 * time.Minute},
		baseline.Deployment:            workload,
		baseline.StatefulSet:           workload,
		baseline.DaemonSet:             workload,
		baseline.ReplicationController: workload,
		baseline.ClusterServiceVersion: {"": 15 * time.Minute},
		baseline.Subscription:          {"": 15 * time.Minute},
		baseline.Alert:                 {"": 15 * time.Minute},
		baseline.HostedCluster:         {"": 40 * time.Minute},
		baseline.NodePool:              {"": time.Hour},
	}
}

// defaultLimit is the limit of the other kinds.
const defaultLimit = 10 * time.Minute

func limitOf(kind baseline.Kind, reason string) time.Duration {
	of, known := limits()[kind]
	if !known {
		return defaultLimit
	}
	if limit, known := of[reason]; known {
		return limit
	}
	return of[""]
}

// duringRollout reports whether a problem of a kind counts while nodes are still being updated: that of what does the
// update. Workloads are evicted by it, and alerts follow them.
func duringRollout(kind baseline.Kind) bool {
	updating := []baseline.Kind{
		baseline.ClusterVersion, baseline.ClusterOperator, baseline.MachineConfigPool, baseline.Node, baseline.APIService, baseline.HostedCluster,
		baseline.NodePool,
	}
	return slices.Contains(updating, kind)
}
