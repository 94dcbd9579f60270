package health_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/openshift/update-preflight/collector/health"
	"github.com/openshift/update-preflight/collector/internal/checktest"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

const machineSetsPath = "/apis/machine.openshift.io/v1beta1/machinesets"

// machineSet is one of workers that has all its machines, but for changes.
func machineSet(name string, changes ...func(*machinev1beta1.MachineSet)) *machinev1beta1.MachineSet {
	set := &machinev1beta1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-machine-api", Name: name, Labels: map[string]string{"hive.openshift.io/machine-pool": "worker"}},
		Spec:       machinev1beta1.MachineSetSpec{Replicas: new(int32(3))},
		Status:     machinev1beta1.MachineSetStatus{ObservedGeneration: 1, Replicas: 3, ReadyReplicas: 3, AvailableReplicas: 3},
	}
	for _, change := range changes {
		change(set)
	}
	return set
}

// reserving are UpgradeConfigs that ask for capacity, and what else there is.
func reserving(topology configv1.TopologyMode, sets ...*machinev1beta1.MachineSet) []runtime.Object {
	objects := []runtime.Object{infrastructure(topology), upgradeConfig(func(spec map[string]any) { spec["capacityReservation"] = true })}
	for _, set := range sets {
		objects = append(objects, set)
	}
	return objects
}

func TestCapacity(t *testing.T) {
	serveUpgradeConfigs(t)
	const title = "CapacityReservation"
	ours := configv1.HighlyAvailableTopologyMode
	named := func(name, reason string, outcome preflight.Outcome) results {
		return results{name: said(outcome, reason)}
	}
	for name, tc := range map[string]struct {
		reason  string
		objects []runtime.Object
		says    string
		want    results
	}{
		"Fine": {
			reason: "MUO copies each", objects: reserving(ours, machineSet("a"), machineSet("b")), says: "2 of them",
			want: named(title, "AsExpected", preflight.Pass),
		},
		"ScaledToNone": {
			reason: "one that wants no machines lacks none",
			objects: reserving(ours, machineSet("a", func(set *machinev1beta1.MachineSet) {
				set.Spec.Replicas, set.Status = new(int32(0)), machinev1beta1.MachineSetStatus{ObservedGeneration: 1}
			})),
			want: named(title, "AsExpected", preflight.Pass),
		},
		"NoUpgradeConfig": {
			reason: "nobody asked for capacity", objects: []runtime.Object{infrastructure(ours)},
			want: named(title, "NoUpgradeConfig", preflight.Skipped),
		},
		"NotReserved": {
			reason: "the UpgradeConfig does not ask for capacity", objects: []runtime.Object{upgradeConfig(func(map[string]any) {})},
			want: named(title, "NotReserved", preflight.Skipped),
		},
		"NotReservedInWords": {
			reason: "false is no", objects: []runtime.Object{upgradeConfig(func(spec map[string]any) { spec["capacityReservation"] = false })},
			want: named(title, "NotReserved", preflight.Skipped),
		},
		"NoMachineSets": {
			reason: "there is none to copy", objects: reserving(ours), says: "hive.openshift.io/machine-pool=worker",
			want: named(title, "NoMachineSets", preflight.Fail),
		},
		"OthersMachineSets": {
			reason: "MUO looks for the workers' in one namespace only",
			objects: reserving(ours, machineSet("infra", func(set *machinev1beta1.MachineSet) { set.Labels["hive.openshift.io/machine-pool"] = "infra" }),
				machineSet("elsewhere", func(set *machinev1beta1.MachineSet) { set.Namespace = "elsewhere" }),
				machineSet("bare", func(set *machinev1beta1.MachineSet) { set.Labels = nil })),
			want: named(title, "NoMachineSets", preflight.Fail),
		},
		"MachinesMissing": {
			reason: "a cloud that does not deliver does not deliver more",
			objects: reserving(ours, machineSet("a", func(set *machinev1beta1.MachineSet) { set.Status.AvailableReplicas = 1 }),
				machineSet("b")),
			says: `MachineSet "a" has 1 of 3 machines`, want: named("MachineSet-a", "MachinesMissing", preflight.Fail),
		},
		"Broken": {
			reason: "a copy is broken too",
			objects: reserving(ours, machineSet("a", func(set *machinev1beta1.MachineSet) {
				set.Status.ErrorReason, set.Status.ErrorMessage = new(machinev1beta1.MachineSetStatusError("InvalidConfiguration")), new("no such flavor")
			})),
			says: "no such flavor", want: named("MachineSet-a", "InvalidConfiguration", preflight.Fail),
		},
		"BrokenWithoutAReason": {
			reason: "a message is enough", objects: reserving(ours, machineSet("a", func(set *machinev1beta1.MachineSet) { set.Status.ErrorMessage = new("") })),
			want: named("MachineSet-a", "MachineSetError", preflight.Fail),
		},
		"Stale": {
			reason:  "what the controller has not seen it cannot tell of",
			objects: reserving(ours, machineSet("a", func(set *machinev1beta1.MachineSet) { set.Status.ObservedGeneration = 0 })),
			says:    "of generation 0, but its spec is of generation 1", want: named("MachineSet-a", "StaleStatus", preflight.Unknown),
		},
		"NameTooLong": {
			reason: "a machine has the name of its MachineSet in a label", objects: reserving(ours, machineSet(strings.Repeat("a", 56))),
			want: named("MachineSet-"+strings.Repeat("a", 56), "NameTooLong", preflight.Fail),
		},
		"NameJustShortEnough": {
			reason: "63 characters are a label", objects: reserving(ours, machineSet(strings.Repeat("a", 55))),
			want: named(title, "AsExpected", preflight.Pass),
		},
		"HyperShift": {
			reason: "NodePools make the machines", objects: reserving(configv1.ExternalTopologyMode),
			want: named(title, "HyperShift", preflight.Skipped),
		},
	} {
		t.Run(name, func(t *testing.T) {
			server.Create(t, tc.objects...)
			findings := checktest.Run(t, health.Capacity(), server.Snapshot(t), patch(t))
			if diff := cmp.Diff(tc.want, checktest.Results(findings)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if !strings.Contains(findings[0].Message, tc.says) {
				t.Errorf("%s: %q does not say %q", tc.reason, findings[0].Message, tc.says)
			}
		})
	}
}

func TestCapacityOfWhatIsBeingDeleted(t *testing.T) {
	serveUpgradeConfigs(t)
	server.Create(t, reserving(configv1.HighlyAvailableTopologyMode)...)
	deleted := machineSet("a", func(set *machinev1beta1.MachineSet) { set.DeletionTimestamp = new(metav1.Now()) })
	with := server.Responding(map[string]checktest.Response{
		machineSetsPath: checktest.Pages(t, "machine.openshift.io/v1beta1", "MachineSetList", []*machinev1beta1.MachineSet{deleted}),
	})
	got := checktest.Results(checktest.Run(t, health.Capacity(), with.Snapshot(t), patch(t)))
	if diff := cmp.Diff(results{"MachineSet-a": said(preflight.Fail, "BeingDeleted")}, got); diff != "" {
		t.Errorf("it will not be there to be copied (-want +got):\n%s", diff)
	}
}

func TestCapacityUnreadable(t *testing.T) {
	serveUpgradeConfigs(t)
	server.Create(t, upgradeConfig(func(spec map[string]any) { spec["capacityReservation"] = true }))
	reserved := checktest.Body(`{"apiVersion":"upgrade.managed.openshift.io/v1alpha1","kind":"UpgradeConfigList","items":[` +
		`{"apiVersion":"upgrade.managed.openshift.io/v1alpha1","kind":"UpgradeConfig","metadata":{"name":"c","namespace":"n"},"spec":{"capacityReservation":true}}]}`)
	for name, tc := range map[string]struct {
		reason         string
		infrastructure []runtime.Object
		server         checktest.Server
		want           checktest.Result
	}{
		"Forbidden": {reason: "who may not look cannot tell", server: server.Unprivileged(), want: said(preflight.Unknown, "Forbidden")},
		"TopologyForbidden": {
			reason: "whose machines they are cannot be told", want: said(preflight.Unknown, "Forbidden"),
			server: server.Unprivileged().Responding(map[string]checktest.Response{upgradeConfigsPath: reserved}),
		},
		"MachineSetsForbidden": {
			reason: "who may not look cannot tell", want: said(preflight.Unknown, "Forbidden"),
			server: server.Unprivileged().Responding(map[string]checktest.Response{
				upgradeConfigsPath: reserved, "/apis/config.openshift.io/v1/infrastructures/cluster": checktest.Body(
					`{"apiVersion":"config.openshift.io/v1","kind":"Infrastructure","metadata":{"name":"cluster"}}`),
			}),
		},
		"NoMachineAPI": {
			reason: "OpenShift that runs its own control plane has it", infrastructure: []runtime.Object{infrastructure(configv1.HighlyAvailableTopologyMode)},
			server: server.Responding(map[string]checktest.Response{machineSetsPath: checktest.NotServed}), want: said(preflight.Unknown, "APIMissing"),
		},
		"PlainKubernetes": {
			reason: "it has no machines of that kind", want: said(preflight.Skipped, "PlainKubernetes"),
			server: server.Responding(map[string]checktest.Response{machineSetsPath: checktest.NotServed}),
		},
		"Malformed": {
			reason: "what the schema does not allow", want: said(preflight.Unknown, "Error"),
			server: server.Responding(map[string]checktest.Response{upgradeConfigsPath: checktest.Body(
				`{"apiVersion":"upgrade.managed.openshift.io/v1alpha1","kind":"UpgradeConfigList","items":[{"kind":"UpgradeConfig","spec":true}]}`)}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			server.Create(t, tc.infrastructure...)
			got := checktest.Results(checktest.Run(t, health.Capacity(), tc.server.Snapshot(t), patch(t)))
			if diff := cmp.Diff(results{"CapacityReservation": tc.want}, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestCapacityInMasses(t *testing.T) {
	serveUpgradeConfigs(t)
	server.Create(t, reserving(configv1.HighlyAvailableTopologyMode)...)
	var sets []*machinev1beta1.MachineSet
	for i := range 2000 {
		sets = append(sets, machineSet(fmt.Sprintf("s%04d", i), func(set *machinev1beta1.MachineSet) { set.Status.AvailableReplicas = 0 }))
	}
	many := server.Responding(map[string]checktest.Response{
		machineSetsPath: checktest.Pages(t, "machine.openshift.io/v1beta1", "MachineSetList", sets),
	})
	findings := checktest.Run(t, health.Capacity(), many.Snapshot(t), patch(t))
	if len(findings) != 51 || !strings.Contains(findings[50].Message, "1950 Fail") {
		t.Errorf("got %d findings, the last %q; want 50 and the count of the rest", len(findings), findings[len(findings)-1].Message)
	}
}
