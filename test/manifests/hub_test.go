package manifests_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	workv1alpha1 "open-cluster-management.io/api/work/v1alpha1"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/runner/fleet/hub"
	"github.com/openshift/update-preflight/runner/trigger/page"
)

const (
	signingName = "update-preflight-signing"
	pageName    = "update-preflight-page"
)

func TestSigningRBACIsCurrent(t *testing.T) {
	const comment = `# Generated from the permissions that the packages declare, by
# go test ./test/manifests -update
#
# The key with which verdicts are signed.
`
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}}
	needs := access.Needs{Required: []access.Request{{Verb: "get", Resource: "secrets", Namespace: namespace, Name: signingName}}}
	var objects []any
	for _, object := range needs.Roles(signingName, subjects) {
		objects = append(objects, object)
	}
	expectCurrent(t, "switches/signing/rbac.yaml", write(t, comment, objects))
}

// The permissions to review who asks for the page are those of its switch.
func TestPageRBACIsCurrent(t *testing.T) {
	const comment = `# Generated from the permissions that the packages declare, by
# go test ./test/manifests -update
#
# Who asks for the page, and may they see it?
`
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}}
	var objects []any
	for _, object := range page.Needs().Roles(pageName, subjects) {
		objects = append(objects, object)
	}
	expectCurrent(t, "switches/page/rbac.yaml", write(t, comment, objects))
}

// Each part of the page has the names of the others, and nothing reaches it but the routers.
func TestPageIsReached(t *testing.T) {
	found := map[string]*unstructured.Unstructured{}
	for _, object := range overlay(t, ".", "page") {
		found[object.GetKind()+" "+object.GetName()] = object
	}
	at := func(object string, fields ...string) any {
		t.Helper()
		if found[object] == nil {
			t.Fatalf("there is no %s", object)
		}
		value, _, err := unstructured.NestedFieldNoCopy(found[object].Object, fields...)
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	list := func(of any) []any { entries, _ := of.([]any); return entries }
	pod := []string{"spec", "template", "spec"}
	containers := list(at("Deployment "+name, append(pod, "containers")...))
	container, _ := containers[0].(map[string]any)
	volumes := list(at("Deployment "+name, append(pod, "volumes")...))
	ingress := list(at("NetworkPolicy "+name, "spec", "ingress"))
	secret := pageName + "-serving-cert"
	rule := at("ClusterRole "+page.Role, "rules")
	for what, tc := range map[string]struct{ got, want any }{
		"the port of the container":  {list(container["ports"])[0], map[string]any{"name": "page", "containerPort": int64(9443)}},
		"the ports of the container": {len(list(container["ports"])), 3},
		"the volumes":                {len(volumes), 2},
		"the Secret of the volume":   {volumes[0], map[string]any{"name": "page-serving-cert", "secret": map[string]any{"secretName": secret}}},
		"the Secret of the Service": {
			found["Service "+pageName].GetAnnotations()["service.beta.openshift.io/serving-cert-secret-name"],
			secret,
		},
		"the port of the Service": {
			list(at("Service "+pageName, "spec", "ports"))[0],
			map[string]any{"name": "page", "port": int64(443), "targetPort": "page"},
		},
		"the Service of the Route": {at("Route "+pageName, "spec", "to"), map[string]any{"kind": "Service", "name": pageName}},
		"the port of the Route":    {at("Route "+pageName, "spec", "port"), map[string]any{"targetPort": "page"}},
		"the TLS of the Route": {
			at("Route "+pageName, "spec", "tls"),
			map[string]any{"termination": "reencrypt", "insecureEdgeTerminationPolicy": "Redirect"},
		},
		"the rules for connections in": {len(ingress), 3},
		"who reaches the page": {ingress[2], map[string]any{
			"from": []any{map[string]any{"namespaceSelector": map[string]any{
				"matchLabels": map[string]any{"policy-group.network.openshift.io/ingress": ""},
			}}},
			"ports": []any{map[string]any{"port": "page", "protocol": "TCP"}},
		}},
		"what readers may": {rule, []any{map[string]any{
			"apiGroups": []any{page.Permission().Group}, "resources": []any{page.Permission().Resource}, "verbs": []any{page.Permission().Verb},
		}}},
	} {
		if diff := cmp.Diff(tc.want, tc.got); diff != "" {
			t.Errorf("%s (-want, +got):\n%s", what, diff)
		}
	}
}

// maxWork is the limit of the manifests of a ManifestWork before OCM raised it, in bytes.
const maxWork = 50 << 10

// The controller on the clusters of a hub has the manifests of the controller on OpenShift.
func TestHubControllerIsCurrent(t *testing.T) {
	const comment = `# Generated from the manifests of the controller on OpenShift, by
# go test ./test/manifests -update
`
	var contents []any
	size := 0
	for _, object := range build(t, manifests) {
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		size += len(text)
		contents = append(contents, object.Object)
	}
	if size > maxWork {
		t.Errorf("the manifests have %d bytes, and a ManifestWork of an older OCM has at most %d", size, maxWork)
	}
	replicas := map[string]any{
		"apiVersion": workv1alpha1.GroupVersion.String(), "kind": "ManifestWorkReplicaSet",
		"metadata": map[string]any{"namespace": "update-preflight", "name": "controller"},
		"spec": map[string]any{
			"placementRefs":        []any{map[string]any{"name": "clusters"}},
			"manifestWorkTemplate": map[string]any{"workload": map[string]any{"manifests": contents}},
		},
	}
	expectCurrent(t, "open-cluster-management/controller.yaml", write(t, comment, []any{replicas}))
}

// The example of a request is what the command prints, and of the types of OCM.
func TestHubTargetIsCurrent(t *testing.T) {
	const comment = `# Generated by go test ./test/manifests -update. The same for another version:
# oc preflight fleet request --to VERSION --placement update-preflight/clusters
`
	made, err := hub.Request("4.19.12", types.NamespacedName{Namespace: "update-preflight", Name: "clusters"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	expectCurrent(t, "open-cluster-management/target.yaml", write(t, comment, []any{struct {
		APIVersion string         `json:"apiVersion"`
		Kind       string         `json:"kind"`
		Metadata   map[string]any `json:"metadata"`
		Spec       any            `json:"spec"`
	}{made.APIVersion, made.Kind, map[string]any{"namespace": made.Namespace, "name": made.Name, "labels": made.Labels}, made.Spec}}))
	for _, file := range []string{"controller.yaml", "target.yaml"} {
		text, err := os.ReadFile(filepath.Join(manifests, "open-cluster-management", file))
		if err != nil {
			t.Fatal(err)
		}
		var typed workv1alpha1.ManifestWorkReplicaSet
		if err := yaml.UnmarshalStrict(text, &typed); err != nil || len(typed.Spec.ManifestWorkTemplate.Workload.Manifests) == 0 {
			t.Errorf("%s is no ManifestWorkReplicaSet: %v", file, err)
		}
	}
	if built := build(t, filepath.Join(manifests, "open-cluster-management")); len(built) != 4 {
		t.Errorf("the kustomization has %d objects, want 4", len(built))
	}
}
