package health

import (
	"cmp"
	"context"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/snapshot"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

const (
	ReasonHyperShift      finding.Reason = "HyperShift"
	ReasonNotReserved     finding.Reason = "NotReserved"
	ReasonNoUpgradeConfig finding.Reason = "NoUpgradeConfig"
	ReasonNoMachineSets   finding.Reason = "NoMachineSets"
	ReasonAsExpected      finding.Reason = "AsExpected"
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
func Capacity() check.Check {
	return check.Check{
		Name: "CapacityReservation", Kind: finding.SourceHealth,
		Reads: []access.Request{check.Get("config.openshift.io", "infrastructures", "", "cluster"), check.List("upgrade.managed.openshift.io", "upgradeconfigs"), check.List(machinev1beta1.GroupName, "machinesets")},
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			skipped, err := notReserved(ctx, s.Cluster)
			if err != nil || len(skipped) > 0 {
				return skipped, err
			}
			topology, err := s.Cluster.Topology(ctx)
			if err != nil {
				return nil, fmt.Errorf("could not read the Infrastructure \"cluster\": %w", err)
			}
			if topology == snapshot.HyperShift {
				return []finding.Finding{finding.Skipped(ReasonHyperShift,
					"the machines of this cluster are made by NodePools of the hosting s.Cluster, which surge by rules of their own")}, nil
			}
			sets, err := s.Cluster.MachineSets(ctx)
			if apierrors.IsNotFound(err) {
				return apiMissing(ctx, s.Cluster, "MachineSets", machinev1beta1.GroupName)
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
func notReserved(ctx context.Context, cluster *snapshot.Cluster) ([]finding.Finding, error) {
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
	return []finding.Finding{finding.Skipped(ReasonNotReserved,
		"no UpgradeConfig has spec.capacityReservation, so no capacity is reserved for the time of the update").
		About(upgradeConfigObject(&configs[0]))}, nil
}

func noUpgradeConfig() []finding.Finding {
	return []finding.Finding{finding.Skipped(ReasonNoUpgradeConfig, "the cluster has no UpgradeConfig: no managed-upgrade-operator is told to update it")}
}

func judgeMachineSets(sets []machinev1beta1.MachineSet) []finding.Finding {
	var problems []problem
	workers := 0
	for i := range sets {
		set := &sets[i]
		if set.Namespace != machineNamespace || set.Labels[machinePool] != "worker" {
			continue
		}
		workers++
		if outcome, f := judgeMachineSet(set); outcome != preflight.Pass {
			problems = append(problems, problem{outcome, func() finding.Finding { return f }})
		}
	}
	switch {
	case workers == 0:
		return []finding.Finding{finding.Fail(ReasonNoMachineSets,
			"an UpgradeConfig reserves capacity, but no MachineSet in namespace %q has the label %s=worker, so there is none that the managed-upgrade-operator could copy", machineNamespace, machinePool).
			Remedy("Label those of the workers: oc -n %s label machineset NAME %s=worker. Or do not reserve capacity: spec.capacityReservation of the UpgradeConfig", machineNamespace, machinePool)}
	case len(problems) == 0:
		return []finding.Finding{finding.Pass(ReasonAsExpected,
			"the MachineSets of the workers, %d of them, have all their machines, and can be copied for the time of the update", workers)}
	}
	return told(problems)
}

// judgeMachineSet says why a MachineSet would not surge. One that lacks machines
// of its own most likely gets no more.
func judgeMachineSet(set *machinev1beta1.MachineSet) (preflight.Outcome, finding.Finding) {
	f := finding.Finding{Finding: preflight.Finding{
		Name:        "MachineSet-" + set.Name,
		Remediation: fmt.Sprintf("See what keeps it from making machines: oc -n %s describe machineset %s; oc -n %s get machines", set.Namespace, set.Name, set.Namespace),
		Objects:     []preflight.Object{{APIVersion: machinev1beta1.GroupVersion.String(), Kind: "MachineSet", Namespace: set.Namespace, Name: set.Name}},
	}}
	wanted := int32(1) // the API's default
	if set.Spec.Replicas != nil {
		wanted = *set.Spec.Replicas
	}
	switch {
	case set.DeletionTimestamp != nil:
		f.Reason, f.Message = "BeingDeleted", fmt.Sprintf("MachineSet %q is being deleted", set.Name)
		return preflight.Fail, f
	case len(set.Name+surge) > maxMachineSetName:
		f.Reason = "NameTooLong"
		f.Message = fmt.Sprintf("the copy of MachineSet %q for the time of the update would have a name of more than %d characters, and could make no machines", set.Name, maxMachineSetName)
		f.Remediation = fmt.Sprintf("Replace it by one with a shorter name: oc -n %s get machineset %s -o yaml", set.Namespace, set.Name)
		return preflight.Fail, f
	case set.Status.ObservedGeneration < set.Generation:
		f.Reason = "StaleStatus"
		f.Message = fmt.Sprintf("the status of MachineSet %q is of generation %d, but its spec is of generation %d, so it tells of an earlier state",
			set.Name, set.Status.ObservedGeneration, set.Generation)
		f.Remediation = fmt.Sprintf("Wait until its controller has caught up; see whether it runs: oc -n %s get pods -l k8s-app=controller", set.Namespace)
		return preflight.Unknown, f
	case set.Status.ErrorReason != nil || set.Status.ErrorMessage != nil:
		f.Reason = cmp.Or(string(deref(set.Status.ErrorReason)), "MachineSetError")
		f.Message = fmt.Sprintf("MachineSet %q can make no machines: %s", set.Name, cmp.Or(short(deref(set.Status.ErrorMessage)), f.Reason))
		return preflight.Fail, f
	case set.Status.AvailableReplicas < wanted:
		f.Reason = "MachinesMissing"
		f.Message = fmt.Sprintf("MachineSet %q has %d of %d machines, so it is in doubt whether it gets another for the time of the update", set.Name, set.Status.AvailableReplicas, wanted)
		return preflight.Fail, f
	}
	return preflight.Pass, f
}

// deref is what is pointed at, or nothing.
func deref[T any](pointer *T) T {
	if pointer == nil {
		var nothing T
		return nothing
	}
	return *pointer
}
