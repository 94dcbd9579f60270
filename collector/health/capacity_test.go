package health_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/health"
	"github.com/openshift/update-preflight/collector/internal/checktest"
	"github.com/openshift/update-preflight/collector/snapshot"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

const machineSetsPath = "/apis/machine.openshift.io/v1beta1/machinesets"

// machineSet is a MachineSet of workers with all its machines, and these changes.
func machineSet(name string, changes ...func(*machinev1beta1.MachineSet)) *machinev1beta1.MachineSet {
	set := &machinev1beta1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "openshift-machine-api", Name: name,
			Labels: map[string]string{"hive.openshift.io/machine-pool": "worker"},
		},
		Spec:   machinev1beta1.MachineSetSpec{Replicas: new(int32(3))},
		Status: machinev1beta1.MachineSetStatus{ObservedGeneration: 1, Replicas: 3, ReadyReplicas: 3, AvailableReplicas: 3},
	}
	for _, change := range changes {
		change(set)
	}
	return set
}

// reserving is an UpgradeConfig that reserves capacity, with these MachineSets.
func reserving(topology configv1.TopologyMode, sets ...*machinev1beta1.MachineSet) []runtime.Object {
	objects := []runtime.Object{
		checktest.Infrastructure(topology),
		upgradeConfig(func(spec map[string]any) { spec["capacityReservation"] = true }),
	}
	for _, set := range sets {
		objects = append(objects, set)
	}
	return objects
}

func TestCapacity(t *testing.T) {
	defineUpgradeConfigs(t)
	const check = "CapacityReservation"
	selfManaged := configv1.HighlyAvailableTopologyMode
	named := func(name, reason string, outcome preflight.Outcome) results {
		return results{name: result(outcome, reason)}
	}
	for name, tc := range map[string]struct {
		reason  string
		objects []runtime.Object
		message string // a part of it
		want    results
	}{
		"Fine": {
			reason: "MUO copies each MachineSet", objects: reserving(selfManaged, machineSet("a"), machineSet("b")), message: "all 2 MachineSets",
			want: named(check, "AsExpected", preflight.Pass),
		},
		"ScaledToNone": {
			reason: "a MachineSet scaled to zero lacks no machines",
			objects: reserving(selfManaged, machineSet("a", func(set *machinev1beta1.MachineSet) {
				set.Spec.Replicas, set.Status = new(int32(0)), machinev1beta1.MachineSetStatus{ObservedGeneration: 1}
			})),
			want: named(check, "AsExpected", preflight.Pass),
		},
		"NoUpgradeConfig": {
			reason: "no UpgradeConfig reserves capacity", objects: []runtime.Object{checktest.Infrastructure(selfManaged)},
			want: named(check, "NoUpgradeConfig", preflight.Skipped),
		},
		"NotReserved": {
			reason: "the UpgradeConfig does not reserve capacity", objects: []runtime.Object{upgradeConfig(func(map[string]any) {})},
			want: named(check, "NotReserved", preflight.Skipped),
		},
		"ReservedFalse": {
			reason: "capacityReservation is false", objects: []runtime.Object{upgradeConfig(
				func(spec map[string]any) { spec["capacityReservation"] = false })},
			want: named(check, "NotReserved", preflight.Skipped),
		},
		"NoMachineSets": {
			reason: "there is no MachineSet to copy", objects: reserving(selfManaged), message: "hive.openshift.io/machine-pool=worker",
			want: named(check, "NoMachineSets", preflight.Fail),
		},
		"OthersMachineSets": {
			reason: "MUO copies only the MachineSets of workers in one namespace",
			objects: reserving(selfManaged, machineSet("infra",
				func(set *machinev1beta1.MachineSet) { set.Labels["hive.openshift.io/machine-pool"] = "infra" }),
				machineSet("elsewhere", func(set *machinev1beta1.MachineSet) { set.Namespace = "elsewhere" }),
				machineSet("bare", func(set *machinev1beta1.MachineSet) { set.Labels = nil })),
			want: named(check, "NoMachineSets", preflight.Fail),
		},
		"MachinesMissing": {
			reason: "a MachineSet that lacks machines most likely cannot create more",
			objects: reserving(selfManaged, machineSet("a", func(set *machinev1beta1.MachineSet) { set.Status.AvailableReplicas = 1 }),
				machineSet("b")),
			message: `MachineSet "a" has 1 of 3 machines`, want: named("MachineSet-a", "MachinesMissing", preflight.Fail),
		},
		"Broken": {
			reason: "a copy has the same error",
			objects: reserving(selfManaged, machineSet("a", func(set *machinev1beta1.MachineSet) {
				set.Status.ErrorReason, set.Status.ErrorMessage = new(machinev1beta1.MachineSetStatusError("InvalidConfiguration")),
					new("no such flavor")
			})),
			message: "no such flavor", want: named("MachineSet-a", "InvalidConfiguration", preflight.Fail),
		},
		"BrokenWithoutAReason": {
			reason: "a message is sufficient", objects: reserving(selfManaged,
				machineSet("a", func(set *machinev1beta1.MachineSet) { set.Status.ErrorMessage = new("") })),
			want: named("MachineSet-a", "MachineSetError", preflight.Fail),
		},
		"Stale": {
			reason:  "the status is older than the spec",
			objects: reserving(selfManaged, machineSet("a", func(set *machinev1beta1.MachineSet) { set.Status.ObservedGeneration = 0 })),
			message: "generation 0, but its spec has generation 1", want: named("MachineSet-a", "StaleStatus", preflight.Unknown),
		},
		"NameTooLong": {
			reason: "machines have the name of their MachineSet in a label", objects: reserving(selfManaged, machineSet(strings.Repeat("a", 56))),
			want: named("MachineSet-"+strings.Repeat("a", 56), "NameTooLong", preflight.Fail),
		},
		"NameJustShortEnough": {
			reason: "a label has up to 63 characters", objects: reserving(selfManaged, machineSet(strings.Repeat("a", 55))),
			want: named(check, "AsExpected", preflight.Pass),
		},
		"HyperShift": {
			reason: "NodePools create the machines", objects: reserving(configv1.ExternalTopologyMode),
			want: named(check, "HyperShift", preflight.Skipped),
		},
	} {
		t.Run(name, func(t *testing.T) {
			server.Create(t, tc.objects...)
			findings := checktest.Run(t, health.Capacity(), server.Snapshot(t), patch(t))
			if diff := cmp.Diff(tc.want, checktest.Results(findings)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if !strings.Contains(findings[0].Message, tc.message) {
				t.Errorf("%s: message %q, want %q in it", tc.reason, findings[0].Message, tc.message)
			}
		})
	}
}

func TestCapacityOfADeletedMachineSet(t *testing.T) {
	defineUpgradeConfigs(t)
	server.Create(t, reserving(configv1.HighlyAvailableTopologyMode)...)
	deleted := machineSet("a", func(set *machinev1beta1.MachineSet) { set.DeletionTimestamp = new(metav1.Now()) })
	with := server.Responding(map[string]checktest.Response{
		machineSetsPath: checktest.Pages(t, "machine.openshift.io/v1beta1", "MachineSetList", []*machinev1beta1.MachineSet{deleted}),
	})
	got := checktest.Results(checktest.Run(t, health.Capacity(), with.Snapshot(t), patch(t)))
	if diff := cmp.Diff(results{"MachineSet-a": result(preflight.Fail, "BeingDeleted")}, got); diff != "" {
		t.Errorf("a MachineSet that is being deleted cannot be copied (-want +got):\n%s", diff)
	}
}

func TestCapacityUnread(t *testing.T) {
	defineUpgradeConfigs(t)
	server.Create(t, upgradeConfig(func(spec map[string]any) { spec["capacityReservation"] = true }))
	reserved := checktest.Body(`{"apiVersion":"upgrade.managed.openshift.io/v1alpha1","kind":"UpgradeConfigList","items":[` +
		`{"apiVersion":"upgrade.managed.openshift.io/v1alpha1","kind":"UpgradeConfig","metadata":{"name":"c","namespace":"n"},"spec":{"capacityReservation":true}}]}`)
	for name, tc := range map[string]struct {
		reason         string
		infrastructure []runtime.Object
		server         checktest.Server
		want           checktest.Result
	}{
		"Forbidden": {
			reason: "without permission the check is inconclusive", server: server.Unprivileged(),
			want: result(preflight.Unknown, "Forbidden"),
		},
		"TopologyForbidden": {
			reason: "without the topology the check is inconclusive", want: result(preflight.Unknown, "Forbidden"),
			server: server.Unprivileged().Responding(map[string]checktest.Response{upgradeConfigsPath: reserved}),
		},
		"MachineSetsForbidden": {
			reason: "without permission the check is inconclusive", want: result(preflight.Unknown, "Forbidden"),
			server: server.Unprivileged().Responding(map[string]checktest.Response{
				upgradeConfigsPath: reserved, "/apis/config.openshift.io/v1/infrastructures/cluster": checktest.Body(
					`{"apiVersion":"config.openshift.io/v1","kind":"Infrastructure","metadata":{"name":"cluster"}}`),
			}),
		},
		"NoMachineAPI": {
			reason:         "OpenShift with its own control plane has the API",
			infrastructure: []runtime.Object{checktest.Infrastructure(configv1.HighlyAvailableTopologyMode)},
			server:         server.Responding(map[string]checktest.Response{machineSetsPath: checktest.NotServed}),
			want:           result(preflight.Unknown, "APIMissing"),
		},
		"PlainKubernetes": {
			reason: "plain Kubernetes has no MachineSets", want: result(preflight.Skipped, "PlainKubernetes"),
			server: server.Responding(map[string]checktest.Response{machineSetsPath: checktest.NotServed}),
		},
		"Malformed": {
			reason: "an object that the schema does not allow", want: result(preflight.Unknown, "Error"),
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

func TestCapacityWithMany(t *testing.T) {
	defineUpgradeConfigs(t)
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

const (
	upgradeConfigsPath = "/apis/upgrade.managed.openshift.io/v1alpha1/upgradeconfigs"
	upgradeNamespace   = "openshift-managed-upgrade-operator"
)

// defineUpgradeConfigs makes the server serve UpgradeConfigs, as with MUO.
func defineUpgradeConfigs(t *testing.T) {
	t.Helper()
	server.Define(t, filepath.Join("testdata", "upgradeconfigs.crd.yaml"))
}

// upgradeConfig is an UpgradeConfig for 12:00 on the first of May.
func upgradeConfig(change func(spec map[string]any)) *unstructured.Unstructured {
	spec := map[string]any{
		"type": "OSD", "upgradeAt": "2020-05-01T12:00:00Z", "PDBForceDrainTimeout": int64(120),
		"desired": map[string]any{"channel": "fast-4.18", "version": "4.18.4"},
	}
	change(spec)
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "upgrade.managed.openshift.io/v1alpha1", "kind": "UpgradeConfig",
		"metadata": map[string]any{"name": "managed-upgrade-config", "namespace": upgradeNamespace}, "spec": spec,
	}}
}

// clock is a time on the first of May.
func clock(t *testing.T, at string) time.Time {
	t.Helper()
	now, err := time.Parse(time.DateTime, "2020-05-01 "+at)
	if err != nil {
		t.Fatal(err)
	}
	return now
}

func TestUpgradeWindow(t *testing.T) {
	defineUpgradeConfigs(t)
	for name, tc := range map[string]struct {
		reason  string
		now     string
		change  func(spec map[string]any)
		message string // a part of it
		want    checktest.Result
	}{
		"1150": {
			reason: "it is not yet 12:00", now: "11:50:00", message: "and opens in 10 minutes", want: result(preflight.Warn, "BeforeWindow"),
		},
		"1232": {
			reason: "30 minutes have passed since 12:00", now: "12:32:00", message: "and closed 2 minutes ago",
			want: result(preflight.Warn, "AfterWindow"),
		},
		"1215": {
			reason: "it is within the upgrade window", now: "12:15:00", message: "and is open for 15 minutes more",
			want: result(preflight.Pass, "InWindow"),
		},
		"1200": {
			reason: "the window opens after upgradeAt, not at it", now: "12:00:00", message: "opens in 0 minutes",
			want: result(preflight.Warn, "BeforeWindow"),
		},
		"1200AndASecond": {
			reason: "the window opens after upgradeAt", now: "12:00:01", message: "open for 30 minutes more",
			want: result(preflight.Pass, "InWindow"),
		},
		"1229AndASecond": {
			reason: "the window is 30 minutes", now: "12:29:01", message: "open for 1 minute more",
			want: result(preflight.Pass, "InWindow"),
		},
		"1230": {reason: "the window ends at 30 minutes", now: "12:30:00", want: result(preflight.Warn, "AfterWindow")},
		"Zone": {
			reason: "a time has a zone", now: "12:15:00", change: func(spec map[string]any) { spec["upgradeAt"] = "2020-05-01T14:00:00+02:00" },
			message: "from 2020-05-01T12:00:00Z on", want: result(preflight.Pass, "InWindow"),
		},
		"OtherVersion": {
			reason: "the window is for another update", now: "12:15:00",
			change:  func(spec map[string]any) { spec["desired"] = map[string]any{"version": "4.18.9"} },
			message: `it is for the update to "4.18.9", and not to 4.18.4`, want: result(preflight.Warn, "OtherVersion"),
		},
		"OtherVersionTooLate": {
			reason: "the message has both", now: "13:00:00",
			change:  func(spec map[string]any) { spec["desired"] = map[string]any{"version": "4.18.9"} },
			message: `closed 30 minutes ago; it is for the update to "4.18.9"`, want: result(preflight.Warn, "AfterWindow"),
		},
		"Image": {
			reason: "an image has no version to compare", now: "12:15:00",
			change: func(spec map[string]any) { spec["desired"] = map[string]any{"image": "quay.io/x@sha256:0"} },
			want:   result(preflight.Pass, "InWindow"),
		},
		"NotATime": {
			reason: "the check only warns", now: "12:15:00",
			change:  func(spec map[string]any) { spec["upgradeAt"] = "tomorrow" },
			message: `the upgradeAt "tomorrow", which is not an RFC 3339 time`, want: result(preflight.Warn, "InvalidUpgradeAt"),
		},
		"NoZone": {
			reason: "MUO does not parse a time without a zone either", now: "12:15:00",
			change: func(spec map[string]any) { spec["upgradeAt"] = "2020-05-01 12:00:00" }, want: result(preflight.Warn, "InvalidUpgradeAt"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.change == nil {
				tc.change = func(map[string]any) {}
			}
			server.Create(t, upgradeConfig(tc.change))
			findings := checktest.RunAt(t, health.UpgradeWindow(), server.Snapshot(t), check.Subject{Update: patch(t), Now: clock(t, tc.now)})
			if diff := cmp.Diff(results{"UpgradeWindow": tc.want}, checktest.Results(findings)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if !strings.Contains(findings[0].Message, tc.message) || findings[0].Blocks {
				t.Errorf("%s: %q, blocks: %t; want %q, and false", tc.reason, findings[0].Message, findings[0].Blocks, tc.message)
			}
		})
	}
}

func TestUpgradeWindowWithout(t *testing.T) {
	defineUpgradeConfigs(t)
	elsewhere := upgradeConfig(func(map[string]any) {})
	elsewhere.SetNamespace("elsewhere")
	for name, tc := range map[string]struct {
		reason string
		server checktest.Server
		stored []*unstructured.Unstructured
		want   checktest.Result
	}{
		"None": {reason: "no update is scheduled", server: server, want: result(preflight.Skipped, "NoUpgradeConfig")},
		"Elsewhere": {
			reason: "any namespace is read", server: server, stored: []*unstructured.Unstructured{elsewhere},
			want: result(preflight.Pass, "InWindow"),
		},
		"NotServed": {
			reason: "MUO is not installed", want: result(preflight.Skipped, "NoUpgradeConfig"),
			server: server.Responding(map[string]checktest.Response{upgradeConfigsPath: checktest.NotServed}),
		},
		"NotServedAndForbidden": {
			reason: "an API that does not exist needs no permission", want: result(preflight.Skipped, "NoUpgradeConfig"),
			server: server.Unprivileged().Responding(
				map[string]checktest.Response{"/apis/upgrade.managed.openshift.io/v1alpha1": checktest.NotServed}),
		},
		"Forbidden": {reason: "the check only warns", server: server.Unprivileged(), want: result(preflight.Warn, "Forbidden")},
		"Malformed": {
			reason: "an object that the schema does not allow", want: result(preflight.Warn, "Unreadable"),
			server: server.Responding(map[string]checktest.Response{upgradeConfigsPath: checktest.Body(
				`{"apiVersion":"upgrade.managed.openshift.io/v1alpha1","kind":"UpgradeConfigList","items":[{"kind":"UpgradeConfig","spec":{"upgradeAt":12}}]}`)}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, object := range tc.stored {
				server.Create(t, object)
			}
			got := checktest.Results(checktest.RunAt(t, health.UpgradeWindow(), tc.server.Snapshot(t),
				check.Subject{Update: patch(t), Now: clock(t, "12:15:00")}))
			if diff := cmp.Diff(results{"UpgradeWindow": tc.want}, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// FuzzJudgeWindow checks that with any upgradeAt the finding has a bounded message,
// and does not block.
func FuzzJudgeWindow(f *testing.F) {
	for _, seed := range []string{
		"", "2020-05-01T12:00:00Z", "0000-01-01T00:00:00Z", "9999-12-31T23:59:59+14:00",
		"2020-05-01T12:00:00.999999999Z", "\xff\n",
	} {
		f.Add(seed, "4.18.4")
	}
	now := time.Date(2020, 5, 1, 12, 15, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, at, version string) {
		config := &snapshot.UpgradeConfig{}
		config.Spec.UpgradeAt, config.Spec.Desired.Version = at, version
		found := health.JudgeWindow(gap.Proven("a test"), config, "4.18.4", now)
		if found.Outcome != preflight.Pass && found.Outcome != preflight.Warn {
			t.Errorf("%q is %s", at, found.Outcome)
		}
		if found.Message == "" || found.Reason == "" || len(found.Message) > 20_000 {
			t.Errorf("%q: a message of %d bytes, reason %q", at, len(found.Message), found.Reason)
		}
		opens, err := time.Parse(time.RFC3339, at)
		open := err == nil && now.After(opens) && now.Sub(opens) < 30*time.Minute
		if inside := found.Reason == "InWindow" || found.Reason == "OtherVersion"; inside != open {
			t.Errorf("%q is inside: %t, want %t", at, inside, open)
		}
	})
}
