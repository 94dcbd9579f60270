package machine_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/internal/checktest"
	"github.com/openshift/update-preflight/collector/machine"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

func infrastructure(platform configv1.PlatformType, topology configv1.TopologyMode) *configv1.Infrastructure {
	return &configv1.Infrastructure{
		TypeMeta: metav1.TypeMeta{APIVersion: "config.openshift.io/v1", Kind: "Infrastructure"}, ObjectMeta: metav1.ObjectMeta{Name: "cluster"},
		Status: configv1.InfrastructureStatus{
			ControlPlaneTopology: topology, InfrastructureTopology: configv1.HighlyAvailableTopologyMode, CPUPartitioning: configv1.CPUPartitioningNone,
			PlatformStatus: &configv1.PlatformStatus{Type: platform},
		},
	}
}

// installed is a cluster of 4.21 that was installed as an earlier release, after an installation
// that did not complete.
func installed(first string) *configv1.ClusterVersion {
	entry := func(version string, state configv1.UpdateState) configv1.UpdateHistory {
		return configv1.UpdateHistory{Version: version, State: state, StartedTime: metav1.Now(), Image: "quay.io/x@sha256:1"}
	}
	return &configv1.ClusterVersion{
		TypeMeta: metav1.TypeMeta{APIVersion: "config.openshift.io/v1", Kind: "ClusterVersion"}, ObjectMeta: metav1.ObjectMeta{Name: "version"},
		Spec: configv1.ClusterVersionSpec{ClusterID: "4f2a1c9e-7a1b-4c58-9d1e-5f1f3f0f1a2b"},
		Status: configv1.ClusterVersionStatus{
			Desired: configv1.Release{Version: "4.21.3", Image: "quay.io/x@sha256:1"}, VersionHash: "x",
			History: []configv1.UpdateHistory{
				entry("4.21.3", configv1.CompletedUpdate), entry(first, configv1.CompletedUpdate), entry("4.1.0", configv1.PartialUpdate),
			},
		},
	}
}

// managing is a MachineConfiguration with these machine managers.
func managing(managers ...any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "operator.openshift.io/v1", "kind": "MachineConfiguration", "metadata": map[string]any{"name": "cluster"},
		"spec": map[string]any{"managementState": "Managed", "managedBootImages": map[string]any{"machineManagers": append([]any{}, managers...)}},
	}}
}

// machineSets is the manager of the MachineSets of the Machine API.
func machineSets(mode string) any {
	return map[string]any{"resource": "machinesets", "apiGroup": "machine.openshift.io", "selection": map[string]any{"mode": mode}}
}

func TestBootImages(t *testing.T) {
	const several = configv1.HighlyAvailableTopologyMode
	warned := checktest.Result{Outcome: preflight.Warn, Reason: "BootImageSkew"}
	passed := checktest.Result{Outcome: preflight.Pass, Reason: "AsExpected"}
	for name, tc := range map[string]struct {
		reason   string
		objects  []runtime.Object
		from, to string
		want     checktest.Result
		text     string
	}{
		"Old": {
			reason: "nothing updates the boot images of 4.12 on this platform", want: warned, text: "the cluster was installed as 4.12.9",
			objects: []runtime.Object{infrastructure(configv1.OpenStackPlatformType, several), installed("4.12.9")},
		},
		"Prerelease": {
			reason: "the feature is that of the minor version", to: "4.22.0-rc.1", want: warned, text: "ClusterBootImageSkewError",
			objects: []runtime.Object{infrastructure(configv1.NonePlatformType, several), installed("4.12.9")},
		},
		"New": {
			reason: "4.13 is the oldest that is accepted", want: passed,
			objects: []runtime.Object{infrastructure(configv1.OpenStackPlatformType, several), installed("4.13.0-rc.4")},
		},
		"Managed": {
			reason: "the operator updates them, by default", want: passed, text: "updates the boot images",
			objects: []runtime.Object{infrastructure(configv1.AWSPlatformType, several), installed("4.9.0")},
		},
		"OptedOut": {
			reason: "an administrator has excluded them", want: warned, text: "spec.managedBootImages",
			objects: []runtime.Object{infrastructure(configv1.AWSPlatformType, several), installed("4.9.0"), managing(machineSets("None"))},
		},
		"OptedOutOfAll": {
			reason: "an empty list excludes all", want: warned, text: "spec.managedBootImages",
			objects: []runtime.Object{infrastructure(configv1.GCPPlatformType, several), installed("4.9.0"), managing()},
		},
		"OptedIn": {
			reason: "an administrator has included them", want: passed,
			objects: []runtime.Object{infrastructure(configv1.VSpherePlatformType, several), installed("4.9.0"), managing(machineSets("All"))},
		},
		"SingleNode": {
			reason: "it is not scaled", want: passed,
			objects: []runtime.Object{infrastructure(configv1.NonePlatformType, configv1.SingleReplicaTopologyMode), installed("4.9.0")},
		},
		"BareMetal": {
			reason: "another object decides", want: checktest.Result{Outcome: preflight.Skipped, Reason: "BootImagesUnknown"},
			objects: []runtime.Object{infrastructure(configv1.BareMetalPlatformType, several), installed("4.9.0")},
		},
		"Hosted": {
			reason: "it has no machine-config-operator", want: checktest.Result{Outcome: preflight.Skipped, Reason: "HyperShift"},
			objects: []runtime.Object{infrastructure(configv1.AWSPlatformType, configv1.ExternalTopologyMode), installed("4.9.0")},
		},
		"NotYet":   {reason: "4.21 does not compare them", from: "4.20.1", to: "4.21.1", want: checktest.Result{Outcome: preflight.Skipped, Reason: "NotConcerned"}},
		"Reported": {reason: "from 4.22 on the ClusterOperator reports it", from: "4.22.1", to: "4.23.1", want: checktest.Result{Outcome: preflight.Skipped, Reason: "NotConcerned"}},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.from == "" {
				tc.from = "4.21.3"
			}
			if tc.to == "" {
				tc.to = "4.22.1"
			}
			server.Create(t, tc.objects...)
			subject := check.Subject{Update: checktest.Update(t, tc.from, tc.to)}
			findings := checktest.RunAt(t, machine.BootImages(), server.Snapshot(t), subject)
			if diff := cmp.Diff(map[string]checktest.Result{"BootImages": tc.want}, checktest.Results(findings)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if in := checktest.Messages(findings); !strings.Contains(in, tc.text) {
				t.Errorf("%s: %q, want %q in it", tc.reason, in, tc.text)
			}
		})
	}
}
