package definition_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/runner/definition"
	"github.com/openshift/update-preflight/runner/payload"
	"github.com/openshift/update-preflight/test/user"
)

const group = "definition.example.com"

// version is an element of spec.versions in YAML, with the schema of the spec.
func version(name, schema string, served, storage bool) string {
	return fmt.Sprintf("{name: %s, served: %t, storage: %t, schema: {openAPIV3Schema: {type: object, properties: {spec: %s}}}}", name, served,
		storage, schema)
}

// crd is a manifest; further has more fields of the spec.
func crd(plural, further string, versions ...string) string {
	return fmt.Sprintf("{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: %[1]s.%[2]s}, "+
		"spec: {group: %[2]s, scope: Namespaced, names: {plural: %[1]s, kind: %[3]s}, versions: [%[4]s]%[5]s}}",
		plural, group, strings.ToUpper(plural), strings.Join(versions, ", "), further)
}

// webhook is the conversion by a Service in the namespace default.
func webhook(service string, bundle []byte) string {
	return fmt.Sprintf(", conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {caBundle: %q, "+
		"service: {namespace: default, name: %s}}}}",
		base64.StdEncoding.EncodeToString(bundle), service)
}

// certificate is a certificate that expires at a time, as PEM.
func certificate(t *testing.T, notAfter time.Time) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: notAfter.Add(-time.Hour), NotAfter: notAfter}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

const (
	free   = "{type: object, x-kubernetes-preserve-unknown-fields: true}"
	strict = "{type: object, properties: {f: {type: integer, minimum: 3}}}"
	loose  = "{type: object, properties: {f: {type: integer}}}"
)

// testCase has the present definition, its objects, and the definition of the target.
type testCase struct {
	reason          string
	present, target string
	// objects is the number of objects, whose field f is 1.
	objects int
	stored  string
	deleted bool
	// want are the results by name, texts parts of messages, remedies and commands.
	want  map[string]string
	texts []string
}

func testCases(t *testing.T) map[string]testCase {
	t.Helper()
	fresh, old := certificate(t, time.Now().Add(time.Hour)), certificate(t, time.Now().Add(-time.Hour))
	v1 := version("v1", free, true, true)
	return map[string]testCase{
		"new": {
			reason: "the cluster does not have the definition", target: crd("news", "", v1),
			want: map[string]string{"": "Pass DefinitionsAccepted"},
		},
		"same": {
			reason: "nothing changes", present: crd("sames", "", v1), target: crd("sames", "", v1), objects: 1,
			want:  map[string]string{"": "Pass DefinitionsAccepted"},
			texts: []string{"1 CustomResourceDefinition of the target; valid under changed schemas: 0 objects"},
		},
		"stored version": {
			reason: "objects may be stored in a version that the target lacks", present: crd("olds", "", version("v1beta1", free, true, false), v1),
			target: crd("olds", "", v1),
			stored: `["v1beta1","v1"]`, want: map[string]string{"CRDStoredVersions": "Fail StoredVersionMissing"},
			texts: []string{
				`"olds.definition.example.com" of the target: status.storedVersions contains v1beta1`,
				"oc get olds.definition.example.com -A -o json | oc replace -f -",
				`oc patch crd olds.definition.example.com --subresource=status --type=merge -p '{"status":{"storedVersions":["v1"]}}'`,
			},
		},
		"storage version": {
			reason: "a migration stores the version that the target lacks", present: crd("stores", "", v1),
			target: crd("stores", "", version("v2", free, true, true)),
			want:   map[string]string{"CRDStoredVersions": "Fail StoredVersionMissing"},
			texts: []string{"Update through a release whose CustomResourceDefinition stores a version that this target has: the cluster " +
				"still stores v1."},
		},
		"served version": {
			reason: "clients wrote the version that is removed", present: crd("serves", "", version("v1alpha1", free, true, false), v1),
			target: crd("serves", "", version("v1alpha1", free, false, false), v1), objects: 1,
			want: map[string]string{"CRDServedVersions": "Warn ServedVersionRemoved"}, texts: []string{"version v1alpha1", "writer"},
		},
		"identity": {
			reason: "the API server allows no other scope", present: crd("scopes", "", v1),
			target: strings.Replace(crd("scopes", "", v1), "Namespaced", "Cluster", 1),
			want:   map[string]string{"CRDUpdate": "Fail DefinitionIdentityChanged"},
			texts:  []string{"spec.scope", "delete the CustomResourceDefinition before the update"},
		},
		"unknown fields": {
			reason: "v1 prunes", present: crd("prunes", "", v1), target: crd("prunes", ", preserveUnknownFields: true", v1),
			want: map[string]string{"CRDUpdate": "Fail PreserveUnknownFields"},
		},
		"costly rule": {
			reason: "estimates differ between versions of Kubernetes", present: crd("costs", "", v1),
			target: crd("costs", "", version("v1", "{type: object, properties: {a: {type: array, items: {type: string}, "+
				"x-kubernetes-validations: [{rule: 'self.all(x, self.all(y, x.matches(y)))'}]}}}", true, true)),
			want: map[string]string{"CRDUpdate": "Warn RuleCostEstimate"},
		},
		"invalid objects": {
			reason: "ten objects are named, the others counted", present: crd("invalids", "", version("v1", loose, true, true)),
			target:  crd("invalids", "", version("v1", strict, true, true)),
			objects: 12, want: map[string]string{"CRDSchema": "Warn ObjectsInvalid"},
			texts: []string{
				"12 of 12 objects", "default/o0: spec.f: Invalid value: 1: spec.f in body should be greater than or equal to 3",
				"and 2 more",
			},
		},
		"refused objects": {
			reason: "every write changes the root", present: crd("refuses", "", version("v1", loose, true, true)),
			target: crd("refuses", "", strings.Replace(version("v1", loose, true, true), "{type: object, properties: {spec",
				"{type: object, x-kubernetes-validations: [{rule: 'self.spec.f > 3'}], properties: {spec", 1)),
			objects: 1, want: map[string]string{"CRDSchema": "Fail ObjectsRefused"}, texts: []string{"a write of any field is rejected"},
		},
		"removed": {
			reason: "objects go with their definition", present: crd("removes", "", v1), target: crd("removes", "", v1), deleted: true, objects: 3,
			want: map[string]string{"CRDRemoval": "Warn ObjectsRemoved"}, texts: []string{"its 3 objects"},
		},
		"removed without objects": {
			reason: "a definition without objects can be removed", present: crd("empties", "", v1),
			target: crd("empties", "", v1), deleted: true, want: map[string]string{"": "Pass DefinitionsAccepted"},
		},
		"webhook in use": {
			reason: "the cluster uses the Service already", present: crd("hooks", webhook("absent", fresh), v1),
			target: crd("hooks", webhook("absent", fresh), version("v1", loose, true, true)),
			want:   map[string]string{"CRDConversion": "Fail ConversionUnavailable"}, texts: []string{"default/absent"},
		},
		"new webhook": {
			reason: "the target may bring the Service", present: crd("newhooks", "", v1), target: crd("newhooks", webhook("absent", fresh), v1),
			want: map[string]string{"CRDConversion": "Warn ConversionUnavailable"},
		},
		"expired bundle": {
			reason: "no connection is trusted", present: crd("expires", webhook("kubernetes-ready", old), v1),
			target: crd("expires", webhook("kubernetes-ready", old), version("v1", loose, true, true)),
			want:   map[string]string{"CRDConversion": "Fail ConversionCAExpired"},
		},
		"ready webhook": {
			reason: "the Service has a ready endpoint", present: crd("readies", webhook("kubernetes-ready", fresh), v1),
			target: crd("readies", webhook("kubernetes-ready", fresh), version("v1", loose, true, true)),
			want:   map[string]string{"": "Pass DefinitionsAccepted"},
		},
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	endpoints(t)
	for name, tc := range testCases(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			createPresent(t, tc)
			findings := run(t, server.Dynamic, payload.Definition{
				Name: parse(t, tc.target).GetName(), Deleted: tc.deleted,
				Manifest: []byte(tc.target),
			})
			if diff := cmp.Diff(tc.want, results(findings)); diff != "" {
				t.Errorf("%s: -want +got:\n%s\n%s", tc.reason, diff, texts(findings))
			}
			for _, text := range tc.texts {
				if !strings.Contains(texts(findings), text) {
					t.Errorf("%s: no %q in:\n%s", tc.reason, text, texts(findings))
				}
			}
		})
	}
}

// TestInconclusive expects one finding for the definitions that cannot be checked, and
// results for the others.
func TestInconclusive(t *testing.T) {
	first, second := crd("denieds", "", version("v1", loose, true, true)), crd("forbids", "", version("v1", loose, true, true))
	var definitions []payload.Definition
	for _, manifest := range []string{first, second} {
		createPresent(t, testCase{present: manifest})
		target := strings.Replace(manifest, loose, strict, 1)
		definitions = append(definitions, payload.Definition{Name: parse(t, target).GetName(), Manifest: []byte(target)})
	}
	definitions = append(definitions, payload.Definition{Name: "filtered", Cause: "the features of the cluster are unknown"})

	findings := run(t, limited(t), definitions...)
	if diff := cmp.Diff(map[string]string{"CRDUnread": "Unknown DefinitionsUnread"}, results(findings)); diff != "" {
		t.Fatalf("-want +got:\n%s\n%s", diff, texts(findings))
	}
	for _, text := range []string{"3 CustomResourceDefinitions", "denieds.", "forbids.", "filtered: the features", "cluster-reader"} {
		if !strings.Contains(texts(findings), text) {
			t.Errorf("no %q in:\n%s", text, texts(findings))
		}
	}
}

// The permissions for a release are those to list what it defines.
func TestListNeeds(t *testing.T) {
	needs := definition.ListNeeds([]payload.Definition{
		{Name: "machineconfigs.machineconfiguration.openshift.io"},
		{Name: "foos"},                                // not a name of a CustomResourceDefinition
		{Name: "a.example.com\n- verbs: ['*']"},       // text for the printed role
		{Name: "bars.example.com", Cause: "filtered"}, // it may be applied
	})
	want := access.Needs{Optional: []access.Request{
		{Verb: "list", Group: "machineconfiguration.openshift.io", Resource: "machineconfigs"},
		{Verb: "list", Group: "example.com", Resource: "bars"},
	}}
	if diff := cmp.Diff(want, needs); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// limited is a user with no more than the declared permissions.
func limited(t *testing.T) dynamic.Interface {
	t.Helper()
	needed := definition.Needs()
	if diff := cmp.Diff([]access.Request(nil), needed.Required); diff != "" {
		t.Errorf("the check requires a permission:\n%s", diff)
	}
	return dynamic.NewForConfigOrDie(user.With(t, server.Config(), needed))
}

// endpoints makes a Service with a ready endpoint.
func endpoints(t *testing.T) {
	t.Helper()
	create(t, schema.GroupVersionResource{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}, "default", map[string]any{
		"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
		"metadata":  map[string]any{"name": "ready", "labels": map[string]any{"kubernetes.io/service-name": "kubernetes-ready"}},
		"endpoints": []any{map[string]any{"addresses": []any{"10.0.0.1"}, "conditions": map[string]any{"ready": true}}},
	})
}

// createPresent creates the present definition and its objects, in the first version.
func createPresent(t *testing.T, tc testCase) {
	t.Helper()
	if tc.present == "" {
		return
	}
	definitions := apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")
	manifest := parse(t, tc.present)
	create(t, definitions, "", manifest.Object)
	plural, _, _ := strings.Cut(manifest.GetName(), ".")
	versions, _, _ := unstructured.NestedSlice(manifest.Object, "spec", "versions")
	first, _ := versions[0].(map[string]any)
	resource := schema.GroupVersionResource{Group: group, Version: fmt.Sprint(first["name"]), Resource: plural}
	for i := range tc.objects {
		create(t, resource, "default", map[string]any{
			"apiVersion": group + "/" + resource.Version, "kind": strings.ToUpper(plural),
			"metadata": map[string]any{"name": fmt.Sprintf("o%d", i)}, "spec": map[string]any{"f": int64(1)},
		})
	}
	if _, err := server.Dynamic.Resource(resource).List(t.Context(), metav1.ListOptions{}); tc.objects == 0 {
		for apierrors.IsNotFound(err) && t.Context().Err() == nil {
			_, err = server.Dynamic.Resource(resource).List(t.Context(), metav1.ListOptions{})
		}
	}
	if tc.stored == "" {
		return
	}
	if _, err := server.Dynamic.Resource(definitions).Patch(t.Context(), manifest.GetName(), "application/merge-patch+json",
		[]byte(`{"status":{"storedVersions":`+tc.stored+`}}`), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
}

// create creates an object, once the API server serves its kind.
func create(t *testing.T, resource schema.GroupVersionResource, namespace string, object map[string]any) {
	t.Helper()
	err := apierrors.NewNotFound(schema.GroupResource{}, "")
	for failure := error(err); failure != nil; {
		_, failure = server.Dynamic.Resource(resource).Namespace(namespace).Create(t.Context(), &unstructured.Unstructured{Object: object},
			metav1.CreateOptions{FieldManager: "writer"})
		if failure != nil && !apierrors.IsNotFound(failure) {
			t.Fatal(failure)
		}
	}
}

func parse(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &object.Object); err != nil {
		t.Fatalf("%v in %s", err, manifest)
	}
	return object
}

func run(t *testing.T, client dynamic.Interface, definitions ...payload.Definition) []finding.Finding {
	t.Helper()
	findings, err := definition.Check(client, definitions).Run(t.Context(), check.Subject{Now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		if f.Name != "" && !definition.Reports(f.Name) { // without a name, it has that of the check
			t.Errorf("%s is a finding of this check, and Reports does not know it: a recorded verdict would lose it", f.Name)
		}
	}
	return findings
}

func results(findings []finding.Finding) map[string]string {
	got := map[string]string{}
	for _, f := range findings {
		got[f.Name] = string(f.Outcome) + " " + f.Reason
	}
	return got
}

// texts returns messages, remedies and commands of findings.
func texts(findings []finding.Finding) string {
	var all strings.Builder
	for _, f := range findings {
		all.WriteString(f.Message + "\n" + f.Remediation + "\n")
		for _, action := range f.Actions {
			all.WriteString(action.Command + "\n")
		}
	}
	return all.String()
}
