package health

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/words"
)

var (
	nameCapacityReservation = finding.NewName("CapacityReservation",
		"Checks the capacity that an UpgradeConfig reserves: for the duration of the update, MUO copies the MachineSets of the workers "+
			"with one more machine. A MachineSet must exist, and each must be able to create machines: each that may not has a finding "+
			"MachineSet-<name>. It concerns every update.")

	nameMachineSet = finding.NewName("MachineSet",
		"A MachineSet that may not be able to create machines, found by the check CapacityReservation: MachineSet-<name>.")

	reasonNotReserved = finding.NewReason("NotReserved", finding.Explanation{
		Meaning: "No UpgradeConfig reserves capacity.",
		Cause:   "spec.capacityReservation is not set.",
	})
	reasonNoMachineSets = finding.NewReason("NoMachineSets", finding.Explanation{
		Meaning: "An UpgradeConfig reserves capacity, but no MachineSet can be copied for it.",
		Cause:   "No MachineSet in namespace openshift-machine-api has the label hive.openshift.io/machine-pool=worker.",
		Remedy: "Label the MachineSets of the workers: `oc -n openshift-machine-api label machineset NAME " +
			"hive.openshift.io/machine-pool=worker`.",
	})
	reasonBeingDeleted = finding.NewReason("BeingDeleted", finding.Explanation{
		Meaning: "A MachineSet that should reserve capacity is being deleted.",
		Cause:   "An administrator deleted the MachineSet.",
		Remedy:  "Wait until the MachineSet is deleted, or replace it: `oc -n openshift-machine-api describe machineset NAME`.",
	})
	reasonNameTooLong = finding.NewReason("NameTooLong", finding.Explanation{
		Meaning: "The copy of a MachineSet would have a name that is too long for the label of its machines, so it could not create " +
			"machines.",
		Cause:   "The name of the MachineSet has more than 55 characters.",
		Remedy:  "Replace the MachineSet with one that has a shorter name.",
		Command: "oc -n openshift-machine-api get machineset NAME -o yaml",
	})
	reasonMachineSetError = finding.NewReason("MachineSetError", finding.Explanation{
		Meaning: "A MachineSet cannot create machines, and its status gives no reason.",
		Cause:   "The message contains the error of the MachineSet.",
		Remedy:  "Fix the cause in the message: `oc -n openshift-machine-api describe machineset NAME`.",
	})
	reasonMachinesMissing = finding.NewReason("MachinesMissing", finding.Explanation{
		Meaning: "A MachineSet has fewer machines than requested, so it most likely gets no additional one for the update.",
		Cause:   "The cloud provider did not create the machines, or they are not ready.",
		Remedy:  "Check why the machines are missing: `oc -n openshift-machine-api get machines`.",
	})
)

const (
	// machineNamespace is the namespace of the MachineSets that MUO copies, machinePool the label of worker
	// MachineSets, and surge the suffix of the copies (managed-upgrade-operator pkg/scaler/machineSetScaler.go).
	machineNamespace = "openshift-machine-api"
	machinePool      = "hive.openshift.io/machine-pool"
	surge            = "-upgrade"
	// maxMachineSetName is the length of a label's value: every machine has the name of its MachineSet in one.
	maxMachineSetName = 63
)

// Capacity is the check CapacityReservation.
func Capacity() check.Check {
	return check.Check{
		Name: nameCapacityReservation, Kind: finding.SourceHealth,
		Reads: slices.Concat(check.ReadsTopology(), readsUpgradeConfigs(), []access.Request{check.List(machinev1beta1.GroupName, "machinesets")}),
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			skipped, err := notReserved(ctx, s.Cluster)
			if err != nil || len(skipped) > 0 {
				return skipped, err
			}
			topology, err := s.Topology(ctx)
			if err != nil {
				return nil, err
			}
			if topology == snapshot.HyperShift {
				return []finding.Finding{finding.Skipped(gap.ExtentOf(ctx), check.ReasonHyperShift,
					"NodePools of the management cluster create the machines of this cluster, and surge by their own rules")}, nil
			}
			ctx, missing := gap.Watch(ctx)
			sets, err := s.Cluster.MachineSets(ctx)
			if err == nil && len(ofWorkers(sets)) == 0 {
				err = missing.Err()
			}
			if apierrors.IsNotFound(err) {
				return s.WithoutAPI(ctx, "MachineSets", machinev1beta1.GroupName)
			}
			if err != nil {
				return nil, fmt.Errorf("could not list the MachineSets: %w", err)
			}
			return judgeMachineSets(gap.ExtentOf(ctx), sets), nil
		},
	}
}

// notReserved is the result where no capacity is reserved; it is empty where an UpgradeConfig reserves capacity.
func notReserved(ctx context.Context, cluster *snapshot.Cluster) ([]finding.Finding, error) {
	configs, err := cluster.UpgradeConfigs(ctx)
	if apierrors.IsNotFound(err) || (err == nil && len(configs) == 0) {
		return noUpgradeConfig(gap.ExtentOf(ctx)), nil
	}
	if err != nil {
		return nil, fmt.Errorf("could not list the UpgradeConfigs: %w", err)
	}
	for _, config := range configs {
		if config.Spec.CapacityReservation {
			return nil, nil
		}
	}
	return []finding.Finding{finding.Skipped(gap.ExtentOf(ctx), reasonNotReserved,
		"no UpgradeConfig has spec.capacityReservation, so no capacity is reserved for the update").
		About(upgradeConfigObject(&configs[0]))}, nil
}

func ofWorkers(sets []machinev1beta1.MachineSet) []machinev1beta1.MachineSet {
	return slices.DeleteFunc(slices.Clone(sets), func(set machinev1beta1.MachineSet) bool {
		return set.Namespace != machineNamespace || set.Labels[machinePool] != "worker"
	})
}

func judgeMachineSets(read gap.Extent, sets []machinev1beta1.MachineSet) []finding.Finding {
	var findings []finding.Finding
	workers := ofWorkers(sets)
	for i := range workers {
		if f, ok := judgeMachineSet(&workers[i]); ok {
			findings = append(findings, f.Named(nameMachineSet+"-"+workers[i].Name).About(machineSetObject(&workers[i])))
		}
	}
	switch {
	case len(workers) == 0:
		return []finding.Finding{finding.Fail(reasonNoMachineSets,
			"an UpgradeConfig reserves capacity, but no MachineSet in namespace %q has the label %s=worker, so the "+
				"managed-upgrade-operator has none to copy", machineNamespace, machinePool).
			Remedy("Label the MachineSets of the workers with `oc -n %s label machineset NAME %s=worker`, or remove "+
				"spec.capacityReservation from the UpgradeConfig.", machineNamespace, machinePool)}
	case len(findings) == 0:
		return []finding.Finding{finding.Pass(read, check.ReasonAsExpected,
			"all %d MachineSets of the workers have all their machines, and can be copied for the update", len(workers))}
	}
	return finding.Bounded(finding.Drafts(findings...))
}

// judgeMachineSet returns why a MachineSet would not surge; false for one that
// would. One that lacks machines most likely gets no more.
func judgeMachineSet(set *machinev1beta1.MachineSet) (finding.Finding, bool) {
	const remedy = "Check what prevents the MachineSet from creating machines."
	inspect := []finding.Action{
		finding.Read("oc -n %s describe machineset %s", set.Namespace, set.Name), finding.Read("oc -n %s get machines", set.Namespace),
	}
	wanted := int32(1) // the API's default
	if set.Spec.Replicas != nil {
		wanted = *set.Spec.Replicas
	}
	if set.DeletionTimestamp != nil {
		return finding.Fail(reasonBeingDeleted, "MachineSet %q is being deleted", set.Name).Remedy(remedy).Do(inspect...), true
	}
	if len(set.Name+surge) > maxMachineSetName {
		return finding.Fail(reasonNameTooLong,
			"the copy of MachineSet %q for the update would have a name of more than %d characters, and could create no machines",
			set.Name, maxMachineSetName).
			Do(finding.Read("oc -n %s get machineset %s -o yaml", set.Namespace, set.Name)), true
	}
	if stale, ok := check.Stale(machineSetObject(set), set.Status.ObservedGeneration, set.Generation); ok {
		return stale.Do(finding.Read("oc -n %s get pods -l k8s-app=controller", set.Namespace)), true
	}
	if set.Status.ErrorReason != nil || set.Status.ErrorMessage != nil {
		reason := cmp.Or(finding.ReportedReason(string(deref(set.Status.ErrorReason))), reasonMachineSetError)
		message := cmp.Or(words.Line(deref(set.Status.ErrorMessage), maxQuoted), reason.String())
		return finding.Fail(reason, "MachineSet %q cannot create machines: %s", set.Name, message).Remedy(remedy).Do(inspect...), true
	}
	if set.Status.AvailableReplicas < wanted {
		return finding.Fail(reasonMachinesMissing,
			"MachineSet %q has %d of %s, so it may not get an additional one for the update", set.Name, set.Status.AvailableReplicas,
			words.Count(int(wanted), "machine")).
			Remedy(remedy).Do(inspect...), true
	}
	return finding.Finding{}, false
}

func machineSetObject(set *machinev1beta1.MachineSet) finding.Object {
	return finding.Object{APIVersion: machinev1beta1.GroupVersion.String(), Kind: "MachineSet", Namespace: set.Namespace, Name: set.Name}
}

// deref is the value of a pointer, or the zero value for nil.
func deref[T any](pointer *T) T {
	if pointer == nil {
		var zero T
		return zero
	}
	return *pointer
}

var (
	nameUpgradeWindow = finding.NewName("UpgradeWindow",
		"Compares the current time with the window of each UpgradeConfig: the 30 minutes after spec.upgradeAt, according to MUO's "+
			"documentation. (MUO itself also starts an update later, until it gives up.) It concerns every update, and only warns: the "+
			"check CapacityReservation blocks if UpgradeConfigs cannot be read.")

	reasonInWindow = finding.NewReason("InWindow", finding.Explanation{
		Meaning: "The window of an UpgradeConfig is open.",
		Cause:   "The current time is within 30 minutes after spec.upgradeAt.",
	})
	reasonBeforeWindow = finding.NewReason("BeforeWindow", finding.Explanation{
		Meaning: "The window of an UpgradeConfig has not opened yet.",
		Cause:   "spec.upgradeAt is in the future.",
		Remedy:  "Start the update when the window opens, or set spec.upgradeAt to an earlier time.",
		Command: "oc -n NAMESPACE edit upgradeconfig NAME",
	})
	reasonAfterWindow = finding.NewReason("AfterWindow", finding.Explanation{
		Meaning: "The window of an UpgradeConfig has closed.",
		Cause:   "spec.upgradeAt is more than 30 minutes ago.",
		Remedy:  "Set spec.upgradeAt to the time at which the update should start: `oc -n NAMESPACE edit upgradeconfig NAME`.",
	})
	reasonOtherVersion = finding.NewReason("OtherVersion", finding.Explanation{
		Meaning: "The window of an UpgradeConfig is open, but for another target.",
		Cause:   "spec.desired.version is another version.",
		Remedy:  "Choose the same target for both.",
		Command: "oc -n NAMESPACE edit upgradeconfig NAME",
	})
	reasonInvalidUpgradeAt = finding.NewReason("InvalidUpgradeAt", finding.Explanation{
		Meaning: "The window of an UpgradeConfig is unknown.",
		Cause:   "spec.upgradeAt is not an RFC 3339 time.",
		Remedy:  "Set spec.upgradeAt to the time at which the update should start: `oc -n NAMESPACE edit upgradeconfig NAME`.",
	})
	reasonUnreadable = finding.NewReason("Unreadable", finding.Explanation{
		Meaning: "The UpgradeConfigs could not be read, so the window is unknown.",
		Cause:   "The message contains the error.",
		Remedy:  "Fix the cause in the message, then run the preflight again.",
	})
	reasonForbidden = finding.NewReason("Forbidden", finding.Explanation{
		Meaning: "The user has no permission to read the UpgradeConfigs, so the window is unknown.",
		Cause:   "The user or ServiceAccount that runs the preflight lacks a role.",
		Remedy:  "Bind the roles that `oc preflight auth` prints.",
	})
	reasonNoUpgradeConfig = finding.NewReason("NoUpgradeConfig", finding.Explanation{
		Meaning: "The cluster has no UpgradeConfig.",
		Cause:   "The managed-upgrade-operator is not installed, or no update is scheduled.",
	})
)

// windowLength is the time after upgradeAt in which an update may start, by MUO's
// document (docs/design.md, "Ready to upgrade criteria").
const windowLength = 30 * time.Minute

// UpgradeWindow is the check UpgradeWindow.
func UpgradeWindow() check.Check {
	return check.Check{
		Name: nameUpgradeWindow, Kind: finding.SourceHealth,
		Reads: readsUpgradeConfigs(),
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			configs, err := s.Cluster.UpgradeConfigs(ctx)
			if apierrors.IsNotFound(err) || (err == nil && len(configs) == 0) {
				return noUpgradeConfig(gap.ExtentOf(ctx)), nil
			}
			if err != nil {
				return []finding.Finding{unreadable(err)}, nil
			}
			target := ""
			if s.Update.Known() {
				target = s.Update.To.String()
			}
			var findings []finding.Finding
			for i := range configs {
				findings = append(findings, judgeWindow(gap.ExtentOf(ctx), &configs[i], target, s.Now))
			}
			return finding.Bounded(finding.Drafts(findings...)), nil
		},
	}
}

func unreadable(err error) finding.Finding {
	const message = "could not list the UpgradeConfigs, so the window for the update is unknown: %v"
	if apierrors.IsForbidden(err) {
		return finding.Warn(reasonForbidden, message, err).
			Remedy("Run the preflight as a user with permission to list UpgradeConfigs.").
			Do(finding.Roles())
	}
	return finding.Warn(reasonUnreadable, message, err)
}

// judgeWindow evaluates whether the window is open at a time, and whether it is for the target, unless its version
// is empty.
func judgeWindow(read gap.Extent, config *snapshot.UpgradeConfig, target string, now time.Time) finding.Finding {
	object := upgradeConfigObject(config)
	edit := finding.Change("oc -n %s edit upgradeconfig %s", config.Namespace, config.Name)
	const reschedule = "Set spec.upgradeAt to the time at which the update should start."
	opens, err := time.Parse(time.RFC3339, config.Spec.UpgradeAt)
	if err != nil {
		return finding.Warn(reasonInvalidUpgradeAt,
			"%s has the upgradeAt %q, which is not an RFC 3339 time such as 2020-05-01T12:00:00Z, so its window is unknown",
			check.Describe(object), words.Line(config.Spec.UpgradeAt, maxQuoted)).Remedy(reschedule).Do(edit).About(object)
	}
	closes := opens.Add(windowLength)
	window := fmt.Sprintf("the window of %s is the %d minutes from %s on", check.Describe(object), int(windowLength.Minutes()),
		words.Time(opens))
	mismatch := ""
	if wanted := config.Spec.Desired.Version; wanted != "" && target != "" && wanted != target {
		mismatch = fmt.Sprintf("; it is for the update to %q, and not to %s", words.Line(wanted, maxQuoted), target)
	}
	var f finding.Finding
	switch {
	case !now.After(opens):
		f = finding.Warn(reasonBeforeWindow, "%s, and opens in %s%s", window, minutes(opens.Sub(now)), mismatch).Do(edit)
	case !now.Before(closes):
		f = finding.Warn(reasonAfterWindow, "%s, and closed %s ago%s", window, minutes(now.Sub(closes)), mismatch).Remedy(reschedule).Do(edit)
	case mismatch != "":
		f = finding.Warn(reasonOtherVersion, "%s, and is open for %s more%s", window, minutes(closes.Sub(now)), mismatch).Do(edit)
	default:
		f = finding.Pass(read, reasonInWindow, "%s, and is open for %s more", window, minutes(closes.Sub(now)))
	}
	return f.About(object)
}

// minutes rounds up, so that seconds are not 0 minutes.
func minutes(duration time.Duration) string {
	if whole := int64(math.Ceil(duration.Minutes())); whole != 1 {
		return fmt.Sprintf("%d minutes", whole)
	}
	return "1 minute"
}

func readsUpgradeConfigs() []access.Request {
	return []access.Request{check.List("upgrade.managed.openshift.io", "upgradeconfigs")}
}

func noUpgradeConfig(read gap.Extent) []finding.Finding {
	return []finding.Finding{finding.Skipped(read, reasonNoUpgradeConfig,
		"the cluster has no UpgradeConfig, so no managed-upgrade-operator schedules an update")}
}

func upgradeConfigObject(config *snapshot.UpgradeConfig) finding.Object {
	return finding.Object{
		APIVersion: "upgrade.managed.openshift.io/v1alpha1", Kind: "UpgradeConfig", Namespace: config.Namespace,
		Name: config.Name,
	}
}
