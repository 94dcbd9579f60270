package machine

import (
	"context"
	"slices"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/words"
)

var (
	nameMachineHealthChecks = finding.NewName("MachineHealthChecks",
		"The check for MachineHealthChecks that are not paused, a step of the documented preparation of an "+
			"update. It concerns every update, and warns.")

	reasonNotPaused = finding.NewReason("NotPaused", finding.Explanation{
		Meaning: "Reported when MachineHealthChecks are not paused.",
		Cause: "A node that reboots for the update is NotReady; a MachineHealthCheck that tolerates less than the reboot " +
			"takes deletes its machine.",
		Remedy: "Pause them for the time of the update: `oc -n NAMESPACE annotate mhc NAME cluster.x-k8s.io/paused=\"\"`.",
	})
	reasonPaused = finding.NewReason("Paused", finding.Explanation{
		Meaning: "Reported when all MachineHealthChecks are paused.",
		Cause:   "Each that acts on nodes which are not Ready has the annotation cluster.x-k8s.io/paused.",
		Remedy:  "None needed. Remove the annotation after the update.",
	})
)

// pausedAnnotation pauses a MachineHealthCheck, whatever its value
// (machine-api-operator pkg/controller/machinehealthcheck).
const pausedAnnotation = "cluster.x-k8s.io/paused"

const maxPaused = 20

// HealthChecks is the check MachineHealthChecks.
func HealthChecks() check.Check {
	return check.Check{
		Name: nameMachineHealthChecks, Kind: finding.SourceHealth,
		Reads: []access.Request{check.List(machinev1beta1.GroupName, "machinehealthchecks")},
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			all, err := s.Cluster.MachineHealthChecks(ctx)
			if apierrors.IsNotFound(err) {
				return []finding.Finding{finding.Pass(gap.ExtentOf(ctx), reasonAsExpected, "the cluster has no Machine API")}, nil
			}
			if err != nil {
				return check.Unread("MachineHealthChecks", err), ctx.Err()
			}
			return []finding.Finding{judgeHealthChecks(gap.ExtentOf(ctx), all)}, nil
		},
	}
}

func judgeHealthChecks(read gap.Extent, all []machinev1beta1.MachineHealthCheck) finding.Finding {
	active := slices.DeleteFunc(slices.Clone(all), func(each machinev1beta1.MachineHealthCheck) bool { return !actsOnReadiness(each) })
	running := slices.DeleteFunc(slices.Clone(active), func(each machinev1beta1.MachineHealthCheck) bool {
		_, paused := each.Annotations[pausedAnnotation]
		return paused
	})
	switch {
	case len(active) == 0:
		return finding.Pass(read, reasonAsExpected, "no MachineHealthCheck acts on nodes that are not Ready")
	case len(running) == 0:
		return finding.Pass(read, reasonPaused, "all MachineHealthChecks that act on nodes which are not Ready are paused")
	}
	var names []string
	var objects []finding.Object
	var actions []finding.Action
	for _, each := range running {
		names = append(names, each.Namespace+"/"+each.Name)
		objects = append(objects, finding.Object{APIVersion: machinev1beta1.GroupVersion.String(), Kind: "MachineHealthCheck", Namespace: each.Namespace, Name: each.Name})
		if len(actions) < maxPaused {
			actions = append(actions, finding.Change(`oc -n %s annotate mhc %s %s=`, each.Namespace, each.Name, pausedAnnotation))
		}
	}
	return finding.Warn(reasonNotPaused, "not paused, so a machine may be deleted while its node reboots for the update: %s of MachineHealthCheck, %s",
		words.Count(len(names), "object"), words.List(names, maxPaused)).
		Remedy("Pause them for the time of the update, and remove the annotation after it.").
		Do(actions...).About(objects...)
}

// actsOnReadiness is true for one that deletes machines whose node is not Ready, as during a
// reboot. The one for spot instances acts on their termination only.
func actsOnReadiness(each machinev1beta1.MachineHealthCheck) bool {
	return slices.ContainsFunc(each.Spec.UnhealthyConditions, func(condition machinev1beta1.UnhealthyCondition) bool {
		return condition.Type == corev1.NodeReady
	})
}
