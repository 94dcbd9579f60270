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

// csv is an installed one, with a properties annotation if that is not
// empty.
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
	return fmt.Sprintf(`{"properties":[{"type":"olm.gvk","value":{"group":"a","kind":"B","version":"v1"}},{"type":"olm.maxOpenShiftVersion","value":%q}]}`, newest)
}

func TestIncompatibleOperators(t *testing.T) {
	const name = "IncompatibleOperator-operators.etcd.v1.2.3"
	type results = map[string]checktest.Said
	pass := results{"IncompatibleOperator": {Outcome: preflight.Pass, Reason: "OperatorsCompatible"}}
	fails := results{name: {Outcome: preflight.Fail, Reason: "IncompatibleOperatorsInstalled"}}
	invalid := results{name: {Outcome: preflight.Unknown, Reason: "InvalidMaxOpenShiftVersion"}}
	labelled, annotated := csv("etcd.v1.2.3", supports("4.18")), csv("etcd.v1.2.3", supports("4.18"))
	labelled.SetLabels(map[string]string{"olm.copiedFrom": "elsewhere"})
	annotations := annotated.GetAnnotations()
	annotations["olm.operatorNamespace"] = "elsewhere"
	annotated.SetAnnotations(annotations)
	server.Serve(t, operatorsCRD)
	for test, tc := range map[string]struct {
		reason     string
		from, to   string
		properties string
		object     runtime.Object
		says       string
		want       results
	}{
		"NoLimit":      {reason: "an operator that names none supports every release", says: "1 operators are installed by OLM; 0 of them", want: pass},
		"NoneOfOurs":   {reason: "other properties are no limit", properties: `{"properties":[{"type":"olm.gvk","value":{}}]}`, want: pass},
		"Supported":    {reason: "4.19 is what it supports", properties: supports("4.19"), says: "1 of them name", want: pass},
		"SupportsMore": {reason: "4.20 is more than 4.19, and 4.9 is less", properties: supports("4.20"), want: pass},
		"SupportsLess": {reason: "versions are not compared as text", properties: supports("4.9"), want: fails},
		"Exceeded": {
			reason: "4.19 is beyond 4.18", properties: supports("4.18"), want: fails,
			says: "operator etcd.v1.2.3 in namespace operators supports OpenShift up to 4.18, which 4.19 is beyond; this does not block updates within 4.18",
		},
		"Patch": {
			reason: "4.18 is compatible with 4.18.5", to: "4.18.5", properties: supports("4.18"),
			want: results{"IncompatibleOperator": {Outcome: preflight.Skipped, Reason: "NotConcerned"}},
		},
		"LateInTheMinor":  {reason: "4.19 is compatible with 4.19.5", to: "4.19.5", properties: supports("4.19"), want: pass},
		"423Supports5":    {reason: "4.23 and 5.0 are the same to OLM", from: "4.22.0", to: "5.0.0", properties: supports("4.23"), want: pass},
		"5Supports423":    {reason: "both ways", from: "4.22.0", to: "4.23.0", properties: supports("5.0"), want: pass},
		"422To5":          {reason: "4.22 is not", from: "4.22.0", to: "5.0.0", properties: supports("4.22"), want: fails},
		"423To51":         {reason: "nor is 5.1", from: "5.0.0", to: "5.1.0", properties: supports("4.23"), want: fails},
		"SkipLevel":       {reason: "the target counts, not the next minor version", from: "5.0.0", to: "5.2.0", properties: supports("5.1"), want: fails},
		"Number":          {reason: "the value may be a JSON number", properties: `{"properties":[{"type":"olm.maxOpenShiftVersion","value":4.18}]}`, want: fails},
		"Quotes":          {reason: "quotes in quotes do not count", properties: supports(`4.18`), want: fails},
		"Twice":           {reason: "one only", properties: `{"properties":[{"type":"olm.maxOpenShiftVersion","value":"4.18"},{"type":"olm.maxOpenShiftVersion","value":"4.20"}]}`, says: `it is there 2 times ("4.18", "4.20")`, want: invalid},
		"PatchVersion":    {reason: "X.Y only", properties: supports("4.18.3"), says: `"4.18.3" is more than a minor version; 4.18 would be one`, want: invalid},
		"Word":            {reason: "no version at all", properties: supports("latest"), says: `"latest" is not a version`, want: invalid},
		"Empty":           {reason: "an empty value is not version 0", properties: supports(""), says: "its value is empty", want: invalid},
		"Null":            {reason: "nor is null", properties: `{"properties":[{"type":"olm.maxOpenShiftVersion","value":null}]}`, want: invalid},
		"NotJSON":         {reason: "the annotation cannot be read", properties: `{"properties":`, says: "is not a list of properties", want: invalid},
		"CopiedLabel":     {reason: "what OLM copied is judged where it is at home", object: labelled, says: "0 operators are installed", want: pass},
		"CopiedNamespace": {reason: "older OLM tells by an annotation alone", object: annotated, says: "0 operators are installed", want: pass},
	} {
		t.Run(test, func(t *testing.T) {
			if tc.object == nil {
				tc.object = csv("etcd.v1.2.3", tc.properties)
			}
			server.Hold(t, tc.object)
			findings := checktest.Run(t, gate.IncompatibleOperators(), server.Snapshot(t), parse(t, tc.from, tc.to))
			if diff := cmp.Diff(tc.want, checktest.Summary(findings)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if !strings.Contains(findings[0].Message, tc.says) {
				t.Errorf("%s: message %q, want %q in it", tc.reason, findings[0].Message, tc.says)
			}
		})
	}
}

func TestIncompatibleOperatorsNamesWhatToDo(t *testing.T) {
	server.Serve(t, operatorsCRD)
	server.Hold(t, csv("etcd.v1.2.3", supports("4.18")))
	got := checktest.Run(t, gate.IncompatibleOperators(), server.Snapshot(t), parse(t, "", ""))[0]
	want := []preflight.Object{{APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion", Namespace: "operators", Name: "etcd.v1.2.3"}}
	if diff := cmp.Diff(want, got.Objects); diff != "" {
		t.Errorf("objects: -want +got:\n%s", diff)
	}
	if !strings.Contains(got.Remediation, "oc -n operators get subscriptions.operators.coreos.com") {
		t.Errorf("remediation %q does not lead to the subscription", got.Remediation)
	}
}

func TestWithoutOLM(t *testing.T) {
	openshift := infrastructure(configv1.HighlyAvailableTopologyMode)
	disabled, enabled := desiring("4.18.3"), desiring("4.18.3")
	disabled.Status.Capabilities.KnownCapabilities = []configv1.ClusterVersionCapability{configv1.ClusterVersionCapabilityOperatorLifecycleManager}
	enabled.Status.Capabilities.KnownCapabilities = disabled.Status.Capabilities.KnownCapabilities
	enabled.Status.Capabilities.EnabledCapabilities = disabled.Status.Capabilities.KnownCapabilities
	for name, tc := range map[string]struct {
		reason  string
		objects []runtime.Object
		want    checktest.Said
	}{
		"Disabled": {
			reason: "the capability is not enabled", objects: []runtime.Object{openshift, disabled},
			want: checktest.Said{Outcome: preflight.Skipped, Reason: "CapabilityDisabled"},
		},
		"Enabled": {
			reason: "the API should be there", objects: []runtime.Object{openshift, enabled},
			want: checktest.Said{Outcome: preflight.Unknown, Reason: "APIMissing"},
		},
		"NotOptional": {
			reason: "before 4.15 OLM was no capability", objects: []runtime.Object{openshift, desiring("4.14.3")},
			want: checktest.Said{Outcome: preflight.Unknown, Reason: "APIMissing"},
		},
		"PlainKubernetes": {
			reason: "there is no OpenShift to be compatible with",
			want:   checktest.Said{Outcome: preflight.Skipped, Reason: "PlainKubernetes"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			server.Hold(t, tc.objects...)
			without := server.Answering(map[string]checktest.Answer{operatorsPath: checktest.NotServed})
			findings := checktest.Run(t, gate.IncompatibleOperators(), without.Snapshot(t), parse(t, "", ""))
			if diff := cmp.Diff(map[string]checktest.Said{"IncompatibleOperator": tc.want}, checktest.Summary(findings)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestIncompatibleOperatorsUnreadable(t *testing.T) {
	server.Serve(t, operatorsCRD)
	for name, tc := range map[string]struct {
		reason string
		server checktest.Server
		want   checktest.Said
	}{
		"Forbidden": {reason: "who may not look cannot tell", server: server.Nobody(), want: checktest.Said{Outcome: preflight.Unknown, Reason: "Forbidden"}},
		"Malformed": {
			reason: "an answer that is no list", server: server.Answering(map[string]checktest.Answer{operatorsPath: checktest.Says(`{"items":{}}`)}),
			want: checktest.Said{Outcome: preflight.Unknown, Reason: "Error"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			findings := checktest.Run(t, gate.IncompatibleOperators(), tc.server.Snapshot(t), parse(t, "", ""))
			if diff := cmp.Diff(map[string]checktest.Said{"IncompatibleOperator": tc.want}, checktest.Summary(findings)); diff != "" {
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
	many := server.Answering(map[string]checktest.Answer{operatorsPath: checktest.Pages(t, "meta.k8s.io/v1", "PartialObjectMetadataList", operators)})
	findings := checktest.Run(t, gate.IncompatibleOperators(), many.Snapshot(t), parse(t, "", ""))
	last := findings[len(findings)-1]
	if len(findings) != 51 || last.Outcome != preflight.Fail || !strings.Contains(last.Message, "1150 more") {
		t.Errorf("%d findings, the last is %s: %q", len(findings), last.Outcome, last.Message)
	}
}

func FuzzMaxOpenShift(f *testing.F) {
	for _, seed := range []string{"", "{}", "[]", "null", supports("4.18"), supports("4.18.3"), supports(""), `{"properties":[{"type":"olm.maxOpenShiftVersion"}]}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, annotation string) {
		newest, found, err := gate.MaxOpenShift(annotation)
		if err != nil && len(err.Error()) > 10_000 {
			t.Errorf("an error of %d bytes", len(err.Error()))
		}
		if found && err == nil && (newest.Patch != 0 || len(newest.Pre) > 0) {
			t.Errorf("%q is taken for %s, which is no minor version", annotation, newest)
		}
	})
}
