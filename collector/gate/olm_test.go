package gate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/openshift/update-preflight/collector/gate"
	"github.com/openshift/update-preflight/collector/internal/checktest"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

const (
	operatorsPath = "/apis/operators.coreos.com/v1alpha1/clusterserviceversions"
	operatorsCRD  = "testdata/clusterserviceversions.crd.yaml"
)

// csv is an installed ClusterServiceVersion, with a properties annotation unless
// it is empty.
func csv(name, properties string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
		"metadata": map[string]any{"namespace": "operators", "name": name},
		"spec":     map[string]any{"displayName": name, "install": map[string]any{"strategy": "deployment"}},
		"status":   map[string]any{"phase": "Succeeded"},
	}}
	if properties != "" {
		object.SetAnnotations(map[string]string{"operatorframework.io/properties": properties})
	}
	return object
}

// supports are the properties of an operator that supports OpenShift up to a
// version.
func supports(newest string) string {
	return fmt.Sprintf(
		`{"properties":[{"type":"olm.gvk","value":{"group":"a","kind":"B","version":"v1"}},{"type":"olm.maxOpenShiftVersion","value":%q}]}`,
		newest)
}

func TestIncompatibleOperators(t *testing.T) {
	const name = "IncompatibleOperator-operators.etcd.v1.2.3"
	type results = map[string]checktest.Result
	pass := results{"IncompatibleOperator": {Outcome: preflight.Pass, Reason: "OperatorsCompatible"}}
	fails := results{name: {Outcome: preflight.Fail, Reason: "IncompatibleOperatorsInstalled"}}
	invalid := results{name: {Outcome: preflight.Unknown, Reason: "InvalidMaxOpenShiftVersion"}}
	labelled, annotated := csv("etcd.v1.2.3", supports("4.18")), csv("etcd.v1.2.3", supports("4.18"))
	labelled.SetLabels(map[string]string{"olm.copiedFrom": "elsewhere"})
	annotations := annotated.GetAnnotations()
	annotations["olm.operatorNamespace"] = "elsewhere"
	annotated.SetAnnotations(annotations)
	server.Define(t, operatorsCRD)
	for test, tc := range map[string]struct {
		reason     string
		from, to   string
		properties string
		object     runtime.Object
		message    string // a part of it
		want       results
	}{
		"NoLimit": {
			reason: "an operator without a limit supports every release", message: "OLM has installed 1 operator; 0 of them",
			want: pass,
		},
		"OtherProperty": {reason: "other properties are no limit", properties: `{"properties":[{"type":"olm.gvk","value":{}}]}`, want: pass},
		"Supported":     {reason: "4.19 is supported", properties: supports("4.19"), message: "1 of them have", want: pass},
		"SupportsMore":  {reason: "4.20 is later than 4.19", properties: supports("4.20"), want: pass},
		"SupportsLess":  {reason: "4.9 is earlier than 4.19, although not as text", properties: supports("4.9"), want: fails},
		"Exceeded": {
			reason: "4.19 is later than 4.18", properties: supports("4.18"), want: fails,
			message: "operator etcd.v1.2.3 in namespace operators supports OpenShift up to 4.18, not 4.19; this does not block updates " +
				"within 4.18",
		},
		"Patch": {
			reason: "a patch update stays in 4.18", to: "4.18.5", properties: supports("4.18"),
			want: results{"IncompatibleOperator": {Outcome: preflight.Skipped, Reason: "NotConcerned"}},
		},
		"LateInTheMinor": {reason: "4.19 includes 4.19.5", to: "4.19.5", properties: supports("4.19"), want: pass},
		"423Supports5":   {reason: "OLM treats 4.23 and 5.0 as equal", from: "4.22.0", to: "5.0.0", properties: supports("4.23"), want: pass},
		"5Supports423":   {reason: "OLM treats 5.0 and 4.23 as equal", from: "4.22.0", to: "4.23.0", properties: supports("5.0"), want: pass},
		"422To5":         {reason: "4.22 is earlier than 5.0", from: "4.22.0", to: "5.0.0", properties: supports("4.22"), want: fails},
		"423To51":        {reason: "4.23 is earlier than 5.1", from: "5.0.0", to: "5.1.0", properties: supports("4.23"), want: fails},
		"SkipLevel": {
			reason: "the target is compared, not the next minor version", from: "5.0.0", to: "5.2.0", properties: supports("5.1"),
			want: fails,
		},
		"Number": {
			reason:     "the value may be a JSON number",
			properties: `{"properties":[{"type":"olm.maxOpenShiftVersion","value":4.18}]}`, want: fails,
		},
		"Quotes": {reason: "the quotes of JSON are no part of the value", properties: supports(`4.18`), want: fails},
		"Twice": {
			reason:     "only one value is allowed",
			properties: `{"properties":[{"type":"olm.maxOpenShiftVersion","value":"4.18"},{"type":"olm.maxOpenShiftVersion","value":"4.20"}]}`,
			message:    `the property occurs 2 times ("4.18", "4.20")`, want: invalid,
		},
		"PatchVersion": {
			reason: "only X.Y is allowed", properties: supports("4.18.3"),
			message: `"4.18.3" is more specific than a minor version, such as 4.18`, want: invalid,
		},
		"Word": {
			reason: "the value is no version", properties: supports("latest"), message: `"latest" is not a version`,
			want: invalid,
		},
		"Empty": {reason: "an empty value is not version 0", properties: supports(""), message: "its value is empty", want: invalid},
		"Null": {
			reason: "null is not version 0", properties: `{"properties":[{"type":"olm.maxOpenShiftVersion","value":null}]}`,
			want: invalid,
		},
		"NotJSON": {
			reason: "the annotation is no JSON", properties: `{"properties":`, message: "is not a list of properties",
			want: invalid,
		},
		"CopiedLabel": {
			reason: "a copy is judged in its original namespace", object: labelled, message: "OLM has installed 0 operators",
			want: pass,
		},
		"CopiedNamespace": {
			reason: "older OLM marks a copy only by an annotation", object: annotated, message: "OLM has installed 0 operators",
			want: pass,
		},
	} {
		t.Run(test, func(t *testing.T) {
			if tc.object == nil {
				tc.object = csv("etcd.v1.2.3", tc.properties)
			}
			server.Create(t, tc.object)
			findings := checktest.Run(t, gate.IncompatibleOperators(), server.Snapshot(t), checktest.MinorUpdate(t, tc.from, tc.to))
			if diff := cmp.Diff(tc.want, checktest.Results(findings)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			checktest.Contains(t, tc.reason, findings[0].Message, []string{tc.message})
		})
	}
}

func TestIncompatibleOperatorsRemedy(t *testing.T) {
	server.Define(t, operatorsCRD)
	server.Create(t, csv("etcd.v1.2.3", supports("4.18")))
	findings := checktest.Run(t, gate.IncompatibleOperators(), server.Snapshot(t), checktest.MinorUpdate(t, "", ""))
	want := []preflight.Object{{
		APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion", Namespace: "operators",
		Name: "etcd.v1.2.3",
	}}
	if diff := cmp.Diff(want, findings[0].Objects); diff != "" {
		t.Errorf("objects: -want +got:\n%s", diff)
	}
	checktest.Contains(t, "remedy", checktest.Remedies(findings), []string{"Run oc -n operators get subscriptions.operators.coreos.com"})
}

func TestWithoutOLM(t *testing.T) {
	openshift := checktest.Infrastructure(configv1.HighlyAvailableTopologyMode)
	disabled, enabled := desiring("4.18.3"), desiring("4.18.3")
	disabled.Status.Capabilities.KnownCapabilities = []configv1.ClusterVersionCapability{configv1.ClusterVersionCapabilityOperatorLifecycleManager}
	enabled.Status.Capabilities.KnownCapabilities = disabled.Status.Capabilities.KnownCapabilities
	enabled.Status.Capabilities.EnabledCapabilities = disabled.Status.Capabilities.KnownCapabilities
	for name, tc := range map[string]struct {
		reason  string
		objects []runtime.Object
		want    checktest.Result
	}{
		"Disabled": {
			reason: "the capability is not enabled", objects: []runtime.Object{openshift, disabled},
			want: checktest.Result{Outcome: preflight.Skipped, Reason: "CapabilityDisabled"},
		},
		"Enabled": {
			reason: "the capability is enabled, so the API is missing", objects: []runtime.Object{openshift, enabled},
			want: checktest.Result{Outcome: preflight.Unknown, Reason: "APIMissing"},
		},
		"NotOptional": {
			reason: "before 4.15 OLM was no capability", objects: []runtime.Object{openshift, desiring("4.14.3")},
			want: checktest.Result{Outcome: preflight.Unknown, Reason: "APIMissing"},
		},
		"PlainKubernetes": {
			reason: "the cluster is not OpenShift",
			want:   checktest.Result{Outcome: preflight.Skipped, Reason: "PlainKubernetes"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			server.Create(t, tc.objects...)
			without := server.Responding(map[string]checktest.Response{operatorsPath: checktest.NotServed})
			findings := checktest.Run(t, gate.IncompatibleOperators(), without.Snapshot(t), checktest.MinorUpdate(t, "", ""))
			if diff := cmp.Diff(map[string]checktest.Result{"IncompatibleOperator": tc.want}, checktest.Results(findings)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestIncompatibleOperatorsUnread(t *testing.T) {
	server.Define(t, operatorsCRD)
	for name, tc := range map[string]struct {
		reason string
		server checktest.Server
		want   checktest.Result
	}{
		"Forbidden": {
			reason: "without permission the check is inconclusive", server: server.Unprivileged(),
			want: checktest.Result{Outcome: preflight.Unknown, Reason: "Forbidden"},
		},
		"Malformed": {
			reason: "a response that is no list", server: server.Responding(
				map[string]checktest.Response{operatorsPath: checktest.Body(`{"items":{}}`)}),
			want: checktest.Result{Outcome: preflight.Unknown, Reason: "Error"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			findings := checktest.Run(t, gate.IncompatibleOperators(), tc.server.Snapshot(t), checktest.MinorUpdate(t, "", ""))
			if diff := cmp.Diff(map[string]checktest.Result{"IncompatibleOperator": tc.want}, checktest.Results(findings)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestManyIncompatibleOperators(t *testing.T) {
	var operators []metav1.PartialObjectMetadata
	for i := range 1200 {
		operators = append(operators, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: fmt.Sprintf("ns-%d", i), Name: "x", Annotations: map[string]string{"operatorframework.io/properties": supports("4.18")},
		}})
	}
	many := server.Responding(map[string]checktest.Response{operatorsPath: checktest.Pages(t, "meta.k8s.io/v1", "PartialObjectMetadataList",
		operators)})
	findings := checktest.Run(t, gate.IncompatibleOperators(), many.Snapshot(t), checktest.MinorUpdate(t, "", ""))
	last := findings[len(findings)-1]
	if len(findings) != 51 || last.Outcome != preflight.Fail || !strings.Contains(last.Message, "1150 more") {
		t.Errorf("%d findings, the last is %s: %q", len(findings), last.Outcome, last.Message)
	}
}

func FuzzMaxOpenShift(f *testing.F) {
	for _, seed := range []string{
		"", "{}", "[]", "null", supports("4.18"), supports("4.18.3"), supports(""),
		`{"properties":[{"type":"olm.maxOpenShiftVersion"}]}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, annotation string) {
		newest, found, err := gate.MaxOpenShift(annotation)
		if err != nil && len(err.Error()) > 10_000 {
			t.Errorf("an error of %d bytes", len(err.Error()))
		}
		if found && err == nil && (newest.Patch != 0 || len(newest.Pre) > 0) {
			t.Errorf("%q is parsed as %s, which is no minor version", annotation, newest)
		}
	})
}
