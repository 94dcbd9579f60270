package health

import (
	"cmp"
	"context"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/update"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

const (
	// machineNamespace is where MUO looks for MachineSets, machinePool the label
	// by which it knows those of workers, and surge what it adds to the name of
	// their copies (managed-upgrade-operator pkg/scaler/machineSetScaler.go).
	machineNamespace = "openshift-machine-api"
	machinePool      = "hive.openshift.io/machine-pool"
	surge            = "-upgrade"
	// maxMachineSetName is the length of a label's value: every machine has the
	// name of its MachineSet in one.
	maxMachineSetName = 63
)

// Capacity looks, where an UpgradeConfig asks for capacity to be reserved, at
// the MachineSets of which MUO makes a copy with one more machine for the time
// of the update: there has to be one, and each has to be able to make machines.
// A finding MachineSet-<name> says of which that is in doubt.
func Capacity(cluster *snapshot.Cluster, u update.Update) check.Check {
	return check.Check{
		Title: "CapacityReservation", Kind: preflight.SourceHealth, Update: u,
		Look: func(ctx context.Context) ([]preflight.Finding, error) {
			skipped, err := notReserved(ctx, cluster)
			if err != nil || len(skipped) > 0 {
				return skipped, err
			}
			topology, err := cluster.Topology(ctx)
			if err != nil {
				return nil, fmt.Errorf("could not read the Infrastructure \"cluster\": %w", err)
			}
			if topology == snapshot.HyperShift {
				return []preflight.Finding{{
					Outcome: preflight.Skipped, Reason: "HyperShift",
					Message: "the machines of this cluster are made by NodePools of the hosting cluster, which surge by rules of their own",
				}}, nil
			}
			sets, err := cluster.MachineSets(ctx)
			if apierrors.IsNotFound(err) {
				return apiMissing(ctx, cluster, "MachineSets", machinev1beta1.GroupName)
			}
			if err != nil {
				return nil, fmt.Errorf("could not list the MachineSets: %w", err)
			}
			return judgeMachineSets(sets), nil
		},
	}
}

// notReserved says why there is nothing to look at; it is empty where an
// UpgradeConfig reserves capacity.
func notReserved(ctx context.Context, cluster *snapshot.Cluster) ([]preflight.Finding, error) {
	configs, err := cluster.UpgradeConfigs(ctx)
	if apierrors.IsNotFound(err) || (err == nil && len(configs) == 0) {
		return noUpgradeConfig(), nil
	}
	if err != nil {
		return nil, fmt.Errorf("could not list the UpgradeConfigs: %w", err)
	}
	for _, config := range configs {
		if config.Spec.CapacityReservation {
			return nil, nil
		}
	}
	return []preflight.Finding{{
		Outcome: preflight.Skipped, Reason: "NotReserved", Objects: []preflight.Object{upgradeConfigObject(&configs[0])},
		Message: "no UpgradeConfig has spec.capacityReservation, so no capacity is reserved for the time of the update",
	}}, nil
}

func noUpgradeConfig() []preflight.Finding {
	return []preflight.Finding{{
		Outcome: preflight.Skipped, Reason: "NoUpgradeConfig",
		Message: "the cluster has no UpgradeConfig: no managed-upgrade-operator is told to update it",
	}}
}

func judgeMachineSets(sets []machinev1beta1.MachineSet) []preflight.Finding {
	var problems []problem
	workers := 0
	for i := range sets {
		set := &sets[i]
		if set.Namespace != machineNamespace || set.Labels[machinePool] != "worker" {
			continue
		}
		workers++
		if outcome, finding := judgeMachineSet(set); outcome != preflight.Pass {
			problems = append(problems, problem{outcome, func() preflight.Finding { return finding }})
		}
	}
	switch {
	case workers == 0:
		return []preflight.Finding{{
			Outcome: preflight.Fail, Reason: "NoMachineSets",
			Message: fmt.Sprintf("an UpgradeConfig reserves capacity, but no MachineSet in namespace %q has the label %s=worker, so there is none that the managed-upgrade-operator could copy",
				machineNamespace, machinePool),
			Remediation: fmt.Sprintf("Label those of the workers: oc -n %s label machineset NAME %s=worker. Or do not reserve capacity: spec.capacityReservation of the UpgradeConfig", machineNamespace, machinePool),
		}}
	case len(problems) == 0:
		return []preflight.Finding{{
			Outcome: preflight.Pass, Reason: "AsExpected",
			Message: fmt.Sprintf("the MachineSets of the workers, %d of them, have all their machines, and can be copied for the time of the update", workers),
		}}
	}
	return told(problems)
}

// judgeMachineSet says why a MachineSet would not surge. One that lacks machines
// of its own most likely gets no more.
func judgeMachineSet(set *machinev1beta1.MachineSet) (preflight.Outcome, preflight.Finding) {
	finding := preflight.Finding{
		Name:        "MachineSet-" + set.Name,
		Remediation: fmt.Sprintf("See what keeps it from making machines: oc -n %s describe machineset %s; oc -n %s get machines", set.Namespace, set.Name, set.Namespace),
		Objects:     []preflight.Object{{APIVersion: machinev1beta1.GroupVersion.String(), Kind: "MachineSet", Namespace: set.Namespace, Name: set.Name}},
	}
	wanted := int32(1) // the API's default
	if set.Spec.Replicas != nil {
		wanted = *set.Spec.Replicas
	}
	switch {
	case set.DeletionTimestamp != nil:
		finding.Reason, finding.Message = "BeingDeleted", fmt.Sprintf("MachineSet %q is being deleted", set.Name)
		return preflight.Fail, finding
	case len(set.Name+surge) > maxMachineSetName:
		finding.Reason = "NameTooLong"
		finding.Message = fmt.Sprintf("the copy of MachineSet %q for the time of the update would have a name of more than %d characters, and could make no machines", set.Name, maxMachineSetName)
		finding.Remediation = fmt.Sprintf("Replace it by one with a shorter name: oc -n %s get machineset %s -o yaml", set.Namespace, set.Name)
		return preflight.Fail, finding
	case set.Status.ObservedGeneration < set.Generation:
		finding.Reason = "StaleStatus"
		finding.Message = fmt.Sprintf("the status of MachineSet %q is of generation %d, but its spec is of generation %d, so it tells of an earlier state",
			set.Name, set.Status.ObservedGeneration, set.Generation)
		finding.Remediation = fmt.Sprintf("Wait until its controller has caught up; see whether it runs: oc -n %s get pods -l k8s-app=controller", set.Namespace)
		return preflight.Unknown, finding
	case set.Status.ErrorReason != nil || set.Status.ErrorMessage != nil:
		finding.Reason = cmp.Or(string(deref(set.Status.ErrorReason)), "MachineSetError")
		finding.Message = fmt.Sprintf("MachineSet %q can make no machines: %s", set.Name, cmp.Or(short(deref(set.Status.ErrorMessage)), finding.Reason))
		return preflight.Fail, finding
	case set.Status.AvailableReplicas < wanted:
		finding.Reason = "MachinesMissing"
		finding.Message = fmt.Sprintf("MachineSet %q has %d of %d machines, so it is in doubt whether it gets another for the time of the update", set.Name, set.Status.AvailableReplicas, wanted)
		return preflight.Fail, finding
	}
	return preflight.Pass, finding
}

// deref is what is pointed at, or nothing.
func deref[T any](pointer *T) T {
	if pointer == nil {
		var nothing T
		return nothing
	}
	return *pointer
}
